//! `rankscope snapshot`

use std::path::PathBuf;

pub struct Config {
    pub dir: PathBuf,
    pub pid: Option<u32>,
    pub json: bool,
}

pub fn snapshot(config: &Config) -> Result<u8, String> {
    let _ = (&config.dir, config.pid, config.json);
    Err("x".into())
}
