//! rankscope: I/O and commands around `rankscope-core`. Library and binary in one, since the Python wheel's console
//! command needs the same `run`.

pub mod clock;
pub mod env_vars;
pub mod kernel_file;
pub mod machine;
pub mod probe;
pub mod sources;
pub mod store;
pub mod supervise;
