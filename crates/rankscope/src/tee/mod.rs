//! `--tee`: the job's stderr goes through a helper process that passes it on at once and keeps its end, in which a
//! Python traceback may stand. Where stderr is a terminal the job gets a terminal again, with the same settings and
//! size.
//!
//! The helper is this same executable under another name, in a session of its own: it outlives us, so that a job whose
//! recorder was killed can go on writing. It ends when nobody holds the job's stderr any more.

mod ring;
mod server;
mod terminal;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use server::serve;

/// argv[0] of the helper: the second for a terminal.
pub const NAME: &str = "rankscope-tee";
pub const NAME_TERMINAL: &str = "rankscope-tty";

pub struct Tee {
    helper: Child,
    /// The job's stderr; `None` once the job has it.
    for_job: Option<OwnedFd>,
    kept: File,
}

impl Tee {
    /// Starts the helper.
    pub fn start() -> io::Result<Tee> {
        let on_terminal = terminal::is_terminal(libc::STDERR_FILENO);
        let (name, (from_job, for_job)) = match on_terminal {
            true => (NAME_TERMINAL, terminal::pair_like(libc::STDERR_FILENO)?),
            false => (NAME, pipe()?),
        };
        let kept = ring::create()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0(name).env_clear().stdin(from_job).stdout(Stdio::from(kept.try_clone()?));
        let helper = command.spawn()?;
        Ok(Tee { helper, for_job: Some(for_job), kept })
    }

    /// For the job.
    pub fn stderr(&self) -> Option<RawFd> {
        self.for_job.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Once the job has it: as long as we held it, the helper would not see its end.
    pub fn job_has_it(&mut self) {
        self.for_job = None;
    }

    /// The end of what the job wrote. Waits a moment for what is under way; processes that the job left behind may still
    /// hold its stderr.
    pub fn tail(&mut self, at_most: Duration) -> String {
        self.job_has_it();
        let until = Instant::now() + at_most;
        while Instant::now() < until && matches!(self.helper.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(2));
        }
        String::from_utf8_lossy(&ring::read(&self.kept)).into_owned()
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((read.into(), write.into()))
}
