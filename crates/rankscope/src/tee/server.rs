//! The helper: stdin is the job's stderr, stderr is the real one, stdout the shared memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::process::ExitCode;

use super::ring::Ring;
use super::terminal::Terminal;

/// How often a terminal is asked for its size while nothing is written.
const LOOK_MS: i32 = 200;

pub fn serve(on_terminal: bool) -> ExitCode {
    // SAFETY: setsid touches no memory; a terminal's Ctrl-C and Ctrl-Z are for the job. Descriptors 0 and 1 are ours.
    let (mut input, kept) = unsafe {
        libc::setsid();
        (File::from_raw_fd(libc::STDIN_FILENO), File::from_raw_fd(libc::STDOUT_FILENO))
    };
    let mut terminal = on_terminal.then(|| Terminal::new(libc::STDIN_FILENO, libc::STDERR_FILENO));
    match copy(&mut input, &mut Ring::new(kept), terminal.as_mut()) {
        Ok(()) => ExitCode::SUCCESS,
        // The job's next write then fails as it would have without us.
        Err(_) => ExitCode::FAILURE,
    }
}

fn copy(input: &mut File, ring: &mut Ring, mut terminal: Option<&mut Terminal>) -> io::Result<()> {
    let mut buffer = [0u8; 16 << 10];
    let mut output = io::stderr().lock();
    loop {
        if let Some(terminal) = terminal.as_deref_mut() {
            terminal.follow_size();
            if !is_readable(LOOK_MS)? {
                output.write_all(terminal.rest())?;
                continue;
            }
        }
        let n = match input.read(&mut buffer) {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // A terminal whose last user has gone.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => 0,
            Err(error) => return Err(error),
        };
        if n == 0 {
            return output.write_all(terminal.map(Terminal::rest).unwrap_or_default());
        }
        match terminal.as_deref_mut() {
            Some(terminal) => {
                let text = terminal.as_written(&buffer[..n]);
                output.write_all(text)?;
                ring.add(text)?;
            }
            None => {
                output.write_all(&buffer[..n])?;
                ring.add(&buffer[..n])?;
            }
        }
    }
}

fn is_readable(timeout_ms: i32) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, valid for the call.
    match unsafe { libc::poll(&mut poll, 1, timeout_ms) } {
        -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(false),
        -1 => Err(io::Error::last_os_error()),
        ready => Ok(ready > 0),
    }
}
