//! A terminal in front of a terminal, that a job can't tell from the real one by its settings, its size or what comes
//! out on the screen.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::{termios, winsize};

pub fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: only asks.
    unsafe { libc::isatty(fd) == 1 }
}

/// A new pair (ours, the job's) with the settings and the size of `real`.
pub fn pair_like(real: RawFd) -> io::Result<(OwnedFd, OwnedFd)> {
    let (settings, size) = (settings(real)?, size(real));
    let (mut ours, mut jobs) = (-1, -1);
    // SAFETY: the out-pointers and the structs live through the call; no name is asked for.
    let (ours, jobs) = unsafe {
        if libc::openpty(&mut ours, &mut jobs, std::ptr::null_mut(), &settings, &size) == -1 {
            return Err(io::Error::last_os_error());
        }
        (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(jobs))
    };
    for fd in [&ours, &jobs] {
        // SAFETY: the descriptor is open and ours.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // `try_clone` takes numbers from 3 on, with close-on-exec.
    let high = |fd: OwnedFd| if fd.as_raw_fd() < 3 { fd.try_clone() } else { Ok(fd) };
    Ok((high(ours)?, high(jobs)?))
}

fn settings(fd: RawFd) -> io::Result<termios> {
    // SAFETY: zero bytes are a valid termios, which the call fills.
    unsafe {
        let mut settings: termios = std::mem::zeroed();
        match libc::tcgetattr(fd, &mut settings) {
            0 => Ok(settings),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn size(fd: RawFd) -> winsize {
    let mut size = winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the struct lives through the call, which fills it or leaves it alone.
    unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &mut size) };
    size
}

pub struct Terminal {
    ours: RawFd,
    real: RawFd,
    size: (u16, u16),
    /// The real one makes `\r\n` of each `\n`, as the job's has already done.
    undo_newlines: bool,
    /// A `\r` that may be the first half of such a pair.
    held: Vec<u8>,
    text: Vec<u8>,
}

impl Terminal {
    pub fn new(ours: RawFd, real: RawFd) -> Terminal {
        let newlines = libc::OPOST | libc::ONLCR;
        let undo_newlines = settings(real).is_ok_and(|s| s.c_oflag & newlines == newlines);
        Terminal { ours, real, size: (0, 0), undo_newlines, held: Vec::new(), text: Vec::new() }
    }

    pub fn follow_size(&mut self) {
        let now = size(self.real);
        if (now.ws_row, now.ws_col) != self.size {
            self.size = (now.ws_row, now.ws_col);
            // SAFETY: the struct lives through the call.
            unsafe { libc::ioctl(self.ours, libc::TIOCSWINSZ, &now) };
        }
    }

    /// What the job wrote, before its terminal turned each `\n` into `\r\n`.
    pub fn as_written(&mut self, bytes: &[u8]) -> &[u8] {
        self.text.clear();
        if !self.undo_newlines {
            self.text.extend_from_slice(bytes);
            return &self.text;
        }
        for &byte in bytes {
            if byte != b'\n' {
                self.text.append(&mut self.held);
            }
            self.held.clear();
            if byte == b'\r' { self.held.push(byte) } else { self.text.push(byte) }
        }
        &self.text
    }

    /// What was held back and is no half of a pair.
    pub fn rest(&mut self) -> &[u8] {
        self.text.clear();
        self.text.append(&mut self.held);
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newlines_come_out_as_they_were_written() {
        let mut terminal = Terminal::new(-1, -1);
        terminal.undo_newlines = true;
        // Left: what the job's terminal made of it.
        for (seen, written) in [
            (&b"a\r\nb\r\n"[..], &b"a\nb\n"[..]),
            (b"\r 10%\r 20%", b"\r 10%\r 20%"),
            (b"x\r\r\ny", b"x\r\ny"),
            (b"\r\r\r", b"\r\r\r"),
        ] {
            for chunk in 1..=seen.len() {
                let mut out = Vec::new();
                seen.chunks(chunk).for_each(|bytes| out.extend_from_slice(terminal.as_written(bytes)));
                out.extend_from_slice(terminal.rest());
                assert_eq!(out, written, "in chunks of {chunk}");
            }
        }
    }
}
