//! rankscope: I/O and commands around `rankscope-core`. Library and binary in one, since the Python wheel's console
//! command needs the same `run`.

pub mod store;
