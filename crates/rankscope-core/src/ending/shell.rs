//! Signals: their names, and how shells tell of them.

/// Signals that end a process, as their numbers are on x86-64 and arm64.
const NAMES: [(i32, &str); 17] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (31, "SIGSYS"),
];

pub const KILL: i32 = 9;
pub const BUS: i32 = 7;

pub fn signal_name(signal: i32) -> String {
    let known = NAMES.iter().find(|(number, _)| *number == signal);
    known.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned())
}

/// The signal that an exit code tells of when a shell or a container runtime passed it on: 128 + its number.
pub fn signal_of(exit_code: i32) -> Option<i32> {
    (129..=192).contains(&exit_code).then_some(exit_code - 128)
}

/// The signal that a launcher may mean which passes Python's negative return code on (-9 is seen as 247). Nothing is
/// decided by it: a program may use such a code for anything.
pub fn perhaps_signal_of(exit_code: i32) -> Option<i32> {
    Some(256 - exit_code).filter(|signal| exit_code > 192 && NAMES.iter().any(|(number, _)| number == signal))
}
