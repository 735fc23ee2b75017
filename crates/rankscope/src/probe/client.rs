//! The recorder's side: asks without waiting, and takes the answers that have come.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::sample::Space;

use super::{ANSWER_BYTES, NAME, ORPHAN};
use crate::machine::gap_of;

/// A question without an answer for so long makes the value `Late`.
const LATE_AFTER: Duration = Duration::from_secs(3);
/// A file system is asked at most so often.
const ASK_EVERY: Duration = Duration::from_millis(900);

pub struct Client {
    /// `None`: it is nobody's child.
    helper: Option<Child>,
    /// `None` once the helper was told to end.
    requests: Option<File>,
    answers: File,
    asked: u64,
    waiting: HashMap<u64, String>,
    paths: HashMap<String, Path>,
    partial: Vec<u8>,
}

struct Path {
    last: Option<Measured<Space>>,
    asked_at: Instant,
    open: bool,
}

impl Client {
    /// Starts the helper.
    pub fn start() -> io::Result<Client> {
        Self::start_by(Command::new("/proc/self/exe"), Some)
    }

    /// Starts it from within another program; `rankscope` is our own.
    pub fn start_orphan(rankscope: &std::path::Path) -> io::Result<Client> {
        let mut command = Command::new(rankscope);
        command.arg(ORPHAN);
        Self::start_by(command, |mut parent| {
            // Ends at once. Where nobody may wait for it, or somebody did, that is as good; it is not ours if it stays.
            for _ in 0..1000 {
                match parent.try_wait() {
                    Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                    _ => return None,
                }
            }
            let _ = parent.kill().and_then(|()| parent.wait());
            None
        })
    }

    fn start_by(mut command: Command, adopt: impl FnOnce(Child) -> Option<Child>) -> io::Result<Client> {
        command.arg0(NAME).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut helper = command.spawn()?;
        let missing = || io::Error::other("no pipe to the helper");
        let requests: OwnedFd = helper.stdin.take().ok_or_else(missing)?.into();
        let answers: OwnedFd = helper.stdout.take().ok_or_else(missing)?.into();
        for fd in [&requests, &answers] {
            // SAFETY: the descriptor is open and ours.
            unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        }
        Ok(Client {
            helper: adopt(helper),
            requests: Some(requests.into()),
            answers: answers.into(),
            asked: 0,
            waiting: HashMap::new(),
            paths: HashMap::new(),
            partial: Vec::new(),
        })
    }

    /// Asks about a path, unless a question about it is open or it was asked a moment ago.
    pub fn ask(&mut self, path: &str) {
        let now = Instant::now();
        if self.paths.get(path).is_some_and(|p| p.open || now - p.asked_at < ASK_EVERY) || path.contains('\0')
        {
            return;
        }
        let mut request = path.as_bytes().to_vec();
        request.push(0);
        // A full pipe means that the helper is stuck before its threads: then there is no answer, and no harm.
        let written = self.requests.as_mut().map(|pipe| pipe.write(&request));
        if matches!(written, Some(Ok(n)) if n == request.len()) {
            self.asked += 1;
            self.waiting.insert(self.asked, path.to_owned());
            let entry =
                self.paths.entry(path.to_owned()).or_insert(Path { last: None, asked_at: now, open: true });
            entry.asked_at = now;
            entry.open = true;
        }
    }

    /// Every path may be asked about anew, however short ago it was asked about.
    pub fn make_due(&mut self) {
        let long_ago = Instant::now().checked_sub(ASK_EVERY);
        self.paths.values_mut().for_each(|p| p.asked_at = long_ago.unwrap_or(p.asked_at));
    }

    /// The newest answer about a path, of those that were taken.
    pub fn answer(&self, path: &str) -> Measured<Space> {
        let late =
            |seconds: u64| Gap::new(Reason::Late, format!("statvfs({path}): no answer for {seconds} s"));
        match self.paths.get(path) {
            None => Err(Gap::new(Reason::Late, format!("statvfs({path}): the helper takes no question"))),
            Some(p) if p.open && p.asked_at.elapsed() > LATE_AFTER => Err(late(LATE_AFTER.as_secs())),
            Some(p) => p.last.clone().unwrap_or_else(|| Err(late(0))),
        }
    }

    /// Waits until every question is answered, at most so long.
    pub fn wait(&mut self, limit: Duration) {
        let end = Instant::now() + limit;
        self.take_answers();
        while !self.waiting.is_empty() {
            let left = end.saturating_duration_since(Instant::now()).as_millis();
            let mut poll = libc::pollfd { fd: self.answers.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one pollfd, valid for the call.
            let ready = unsafe { libc::poll(&mut poll, 1, i32::try_from(left).unwrap_or(i32::MAX)) };
            if ready <= 0 || poll.revents & libc::POLLIN == 0 {
                return;
            }
            self.take_answers();
        }
    }

    /// Takes the answers that have come.
    pub fn take_answers(&mut self) {
        let mut buffer = [0u8; ANSWER_BYTES * 16];
        while !self.waiting.is_empty() {
            match self.answers.read(&mut buffer) {
                Ok(n) if n > 0 => self.partial.extend_from_slice(&buffer[..n]),
                _ => break,
            }
            if self.partial.len() >= self.waiting.len() * ANSWER_BYTES {
                break;
            }
        }
        let whole = self.partial.len() / ANSWER_BYTES * ANSWER_BYTES;
        let answers: Vec<u8> = self.partial.drain(..whole).collect();
        for answer in answers.chunks_exact(ANSWER_BYTES) {
            let word = |at: usize| {
                let mut bytes = [0u8; 8];
                bytes.copy_from_slice(&answer[at * 8..at * 8 + 8]);
                u64::from_le_bytes(bytes)
            };
            let Some(path) = self.waiting.remove(&word(0)) else { continue };
            let errno = i32::try_from(word(1)).unwrap_or(libc::EIO);
            let space = Space { fragment_size: word(2), blocks: word(3), free: word(4), available: word(5) };
            let value = match errno {
                0 => Ok(space),
                errno => Err(gap_of(&format!("statvfs({path})"), &io::Error::from_raw_os_error(errno))),
            };
            if let Some(entry) = self.paths.get_mut(&path) {
                entry.last = Some(value);
                entry.open = false;
            }
        }
    }
}

/// The helper ends when its requests do, and when it is asked nothing: a forked child of the program that we are a guest
/// in may hold the pipe open. It is reaped here, since the init of a container may not do so; one that is
/// stuck in a mount is left alone.
impl Drop for Client {
    fn drop(&mut self) {
        if let Some(mut requests) = self.requests.take() {
            // It may have ended, or be stuck.
            let _ = requests.write(&[0]);
        }
        let Some(helper) = &mut self.helper else { return };
        for _ in 0..20 {
            match helper.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                _ => return,
            }
        }
    }
}
