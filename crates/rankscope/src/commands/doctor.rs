//! `rankscope doctor`: what works here and why not, with the remedy.

use std::path::PathBuf;

pub struct Config {
    pub pid: Option<u32>,
    pub store: Option<PathBuf>,
    pub json: bool,
}

pub fn doctor(config: &Config) -> Result<u8, String> {
    let _ = (config.pid, &config.store, config.json);
    Err("x".into())
}
