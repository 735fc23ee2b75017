//! One function a command.

pub mod advise;
pub mod audit;
pub mod compare;
pub mod doctor;
pub mod measure;
pub mod postmortem;
pub mod reap;
pub mod record;
pub mod report;
pub mod run;
pub mod sample;
pub mod scope;
pub mod snapshot;
pub mod sync;
pub mod watch;

/// Exit codes of all commands but `run`.
pub mod exit {
    pub const DONE: u8 = 0;
    /// A finding that asks for action.
    pub const FINDING: u8 = 1;
    pub const WRONG_USE: u8 = 2;
    pub const CANT_READ: u8 = 3;
}
