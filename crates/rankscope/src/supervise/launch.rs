//! From a command line to a running program: `execvp`'s search, fork, exec, and a clear word if it fails.
//!
//! The search is our own, since `execvp` differs: glibc's hands a script without `#!` to /bin/sh, musl's does not.

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use libc::{c_char, c_int, pid_t};

use super::inherited::inherited;

/// Where `execvp` looks without a PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
const SHELL: &std::ffi::CStr = c"/bin/sh";

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The command could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError {
    /// As in a shell: 127 not found, 126 found but not executable, or no process to be had. 2: no command given.
    pub code: u8,
    /// One sentence without "rankscope:", naming the command and the reason.
    pub message: String,
}

/// Becomes the command, with everything as inherited. Returns only if that failed.
pub fn exec(cmd: &[OsString]) -> StartError {
    match Program::new(cmd, &[]) {
        Ok(mut program) => {
            inherited().restore();
            let errno = program.exec();
            program.error(errno)
        }
        Err(error) => error,
    }
}

/// A process on its way to the program.
pub(super) struct Forked {
    pub pid: pid_t,
    /// Brings the errno of a failed exec; closed by a successful one.
    pub report: fs::File,
}

/// A command made ready so that nothing has to be allocated after fork.
pub(super) struct Program {
    name: OsString,
    /// The job's, instead of ours.
    pub(super) stderr: Option<RawFd>,
    /// The files to try, in order.
    candidates: Vec<CString>,
    /// Pointers into `_arguments`, and a null.
    argv: Vec<*const c_char>,
    /// The same for `/bin/sh FILE …`; the second one is set when it is used.
    shell_argv: Vec<*const c_char>,
    /// Pointers into libc's environment and into `_overlay`, and a null.
    envp: Vec<*const c_char>,
    _arguments: Vec<CString>,
    _overlay: Vec<CString>,
}

/// Variables that the job gets in addition to, or instead of, our own.
pub type Overlay = [(&'static str, String)];

impl Program {
    pub(super) fn new(cmd: &[OsString], overlay: &Overlay) -> Result<Program, StartError> {
        let Some(name) = cmd.first().cloned() else {
            return Err(StartError { code: 2, message: "no command given".to_owned() });
        };
        let arguments = cmd.iter().map(|word| c_string(word)).collect::<Option<Vec<CString>>>();
        let candidates = candidates(&name, env::var_os("PATH").as_deref());
        let candidates =
            candidates.iter().map(|path| c_string(path.as_os_str())).collect::<Option<Vec<CString>>>();
        let variable = |(name, value): &(&str, String)| c_string(OsStr::new(&format!("{name}={value}")));
        let overlay_words = overlay.iter().map(variable).collect::<Option<Vec<CString>>>();
        let (Some(arguments), Some(candidates), Some(overlay_words)) = (arguments, candidates, overlay_words)
        else {
            return Err(StartError {
                code: 126,
                message: format!("cannot start {}: NUL in a word", shown(&name)),
            });
        };
        let null = std::ptr::null();
        let argv = arguments.iter().map(|word| word.as_ptr()).chain([null]).collect::<Vec<_>>();
        let shell_argv = [SHELL.as_ptr(), null].into_iter().chain(argv[1..].iter().copied()).collect();
        let envp = environment(overlay).chain(overlay_words.iter().map(|word| word.as_ptr())).chain([null]);
        let envp = envp.collect();
        Ok(Program {
            name,
            stderr: None,
            candidates,
            argv,
            shell_argv,
            envp,
            _arguments: arguments,
            _overlay: overlay_words,
        })
    }

    /// Forks and execs. What came of the exec is read from `Forked::report`.
    pub(super) fn fork(&mut self) -> Result<Forked, StartError> {
        let (report, child_end) = report_pipe().map_err(|error| self.no_process(&error))?;
        // SAFETY: the new process only makes system calls and writes to memory allocated before (see `exec`), so it
        // does not matter in which state other threads left the allocator.
        match unsafe { libc::fork() } {
            -1 => Err(self.no_process(&io::Error::last_os_error())),
            0 => {
                inherited().restore();
                if let Some(stderr) = self.stderr {
                    // SAFETY: the descriptor is open; exec follows.
                    unsafe { libc::dup2(stderr, libc::STDERR_FILENO) };
                }
                let errno = self.exec();
                let bytes = errno.to_ne_bytes();
                // SAFETY: `bytes` lives through the call; _exit runs nothing of the parent's.
                unsafe {
                    libc::write(child_end.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
                    libc::_exit(127)
                }
            }
            pid => Ok(Forked { pid, report: report.into() }),
        }
    }

    /// execvp. Only system calls and no allocation; returns the errno.
    fn exec(&mut self) -> c_int {
        let mut denied = false;
        let mut last = libc::ENOENT;
        let searched = self.candidates.len() > 1;
        for candidate in &self.candidates {
            // SAFETY: all pointers lead to NUL-terminated strings that live as long as `self`, and both lists end with
            // a null; `envp` leads into libc's environment, which no thread changes while a job is being started.
            unsafe {
                libc::execve(candidate.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr());
                last = last_errno();
                if last == libc::ENOEXEC {
                    self.shell_argv[1] = candidate.as_ptr();
                    libc::execve(SHELL.as_ptr(), self.shell_argv.as_ptr(), self.envp.as_ptr());
                    last = last_errno();
                }
            }
            match last {
                libc::EACCES => denied = true,
                libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
                errno => return errno,
            }
        }
        match (denied, searched) {
            (true, _) => libc::EACCES,
            (false, true) => libc::ENOENT,
            (false, false) => last,
        }
    }

    pub(super) fn error(&self, errno: c_int) -> StartError {
        let code = if errno == libc::ENOENT { 127 } else { 126 };
        StartError { code, message: format!("cannot start {}: {}", shown(&self.name), self.reason(errno)) }
    }

    fn reason(&self, errno: c_int) -> String {
        let paths = self.candidates.iter().map(|path| Path::new(OsStr::from_bytes(path.to_bytes())));
        let existing = paths.clone().find(|path| path.exists());
        match (errno, existing) {
            (libc::ENOENT, Some(file)) => {
                let file = file.display();
                format!(
                    "{file} is there, but not the interpreter that it names (in its #! line, or its loader)"
                )
            }
            (libc::ENOENT, None) if is_path(&self.name) => "no such file".to_owned(),
            (libc::ENOENT, None) => "not found in PATH".to_owned(),
            (libc::EACCES, Some(file)) if file.is_dir() => format!("{} is a directory", file.display()),
            (libc::EACCES, Some(file)) => format!("{} is not executable (permission denied)", file.display()),
            (libc::EACCES, None) if !is_path(&self.name) => {
                "not found in PATH, of which not all folders may be searched (permission denied)".to_owned()
            }
            (libc::E2BIG, _) => {
                "its arguments and the environment are longer than the kernel allows".to_owned()
            }
            (errno, _) => io::Error::from_raw_os_error(errno).to_string(),
        }
    }

    fn no_process(&self, error: &io::Error) -> StartError {
        let hint = match error.raw_os_error() {
            Some(libc::EAGAIN) => {
                "; the limit on processes is reached (ulimit -u, or the container's pids.max)"
            }
            Some(libc::EMFILE) => "; the limit on open files is reached (ulimit -n)",
            _ => "",
        };
        StartError { code: 126, message: format!("no process for {}: {error}{hint}", shown(&self.name)) }
    }
}

impl Forked {
    /// Waits at most this long for the exec. `None`: still under way; then its errno, or 0 for success.
    pub(super) fn outcome(&mut self, at_most_ms: c_int) -> Option<c_int> {
        let mut poll = libc::pollfd { fd: self.report.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, which lives through the call.
        if unsafe { libc::poll(&mut poll, 1, at_most_ms) } <= 0 {
            return None;
        }
        let mut bytes = [0; size_of::<c_int>()];
        // Nothing to read: the program runs, or the process was killed on the way, which its end will tell.
        Some(self.report.read_exact(&mut bytes).map_or(0, |()| c_int::from_ne_bytes(bytes)))
    }
}

/// Our own variables as they are, odd ones included, without those that the overlay replaces.
fn environment(overlay: &Overlay) -> impl Iterator<Item = *const c_char> {
    let mut entries = Vec::new();
    // SAFETY: libc's list of NUL-terminated strings ends with a null; no thread changes it while a job is being started.
    let mut at = unsafe { environ };
    while !at.is_null() {
        // SAFETY: `at` is inside the list, whose end is not reached before the null.
        let entry = unsafe { *at };
        if entry.is_null() {
            break;
        }
        // SAFETY: entries are NUL-terminated.
        let text = unsafe { std::ffi::CStr::from_ptr(entry) }.to_bytes();
        let replaced = overlay.iter().any(|(name, _)| {
            text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='))
        });
        if !replaced {
            entries.push(entry);
        }
        // SAFETY: not past the null.
        at = unsafe { at.add(1) };
    }
    entries.into_iter()
}

/// The files that `execvp` would try.
fn candidates(name: &OsStr, path: Option<&OsStr>) -> Vec<PathBuf> {
    if name.is_empty() || is_path(name) {
        return vec![PathBuf::from(name)];
    }
    // An empty entry is the current directory, and an empty PATH is one empty entry.
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH)).as_bytes();
    path.split(|&byte| byte == b':').map(|folder| Path::new(OsStr::from_bytes(folder)).join(name)).collect()
}

fn is_path(name: &OsStr) -> bool {
    name.as_bytes().contains(&b'/')
}

fn shown(name: &OsStr) -> String {
    format!("'{}'", name.to_string_lossy())
}

fn c_string(text: &OsStr) -> Option<CString> {
    CString::new(text.to_os_string().into_vec()).ok()
}

/// A pipe closed by exec, neither end of which is a standard descriptor: those may be closed before exec.
fn report_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, which from here on are ours alone.
    let (read, write) = unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) == -1 {
            return Err(io::Error::last_os_error());
        }
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    // `try_clone` takes a number from 3 on.
    let write = if write.as_raw_fd() < 3 { write.try_clone()? } else { write };
    Ok((read, write))
}

fn last_errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(name: &str, path: Option<&str>) -> Vec<String> {
        let found = candidates(OsStr::new(name), path.map(OsStr::new));
        found.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_name_is_searched_and_a_path_is_not() {
        assert_eq!(tried("ls", Some("/a:/b")), ["/a/ls", "/b/ls"]);
        assert_eq!(tried("./ls", Some("/a:/b")), ["./ls"]);
        assert_eq!(tried("ls", None), ["/bin/ls", "/usr/bin/ls"]);
    }

    #[test]
    fn an_empty_entry_is_the_current_directory() {
        assert_eq!(tried("ls", Some("/a::/b")), ["/a/ls", "ls", "/b/ls"]);
        assert_eq!(tried("ls", Some("")), ["ls"]);
        assert_eq!(tried("", Some("/a")), [""]);
    }

    #[test]
    fn no_command_is_wrong_use() {
        assert_eq!(Program::new(&[], &[]).err().map(|error| error.code), Some(2));
    }
}
