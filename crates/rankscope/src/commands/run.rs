//! `rankscope run -- CMD`: start a command, record what it uses, and end with its exit code, whatever happens to us.

mod summary;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::machine::Machine;
use crate::printer;
use crate::probe::Client;
use crate::sampler::{Recording, Sampler};
use crate::sources::{Options, Target};
use crate::store::{self, About, Writer};
use crate::supervise::{self, Ended, ExitKind};
use crate::{clock, env_vars, sampler};

pub struct Config {
    pub cmd: Vec<OsString>,
    pub store: Option<PathBuf>,
    pub interval: Duration,
    pub window: Duration,
    pub options: Options,
    pub grace: Duration,
    pub json: bool,
    pub verbose: bool,
}

/// The last sample of a job that has ended may take this long.
const LAST_SAMPLE: Duration = Duration::from_secs(1);

pub fn run(config: Config) -> u8 {
    if env_vars::disabled() {
        let error = supervise::exec(&config.cmd);
        printer::say(&error.message);
        return error.code;
    }
    supervise::prepare();
    // Before we become a subreaper, or the helper would be our child.
    let probe = Client::start();
    let subreaper = supervise::become_subreaper();
    let (start_unix_ms, start_boottime_ns) = (clock::unix_ms(), clock::boottime_ns());
    let child = match supervise::start(&config.cmd) {
        Ok(child) => child,
        Err(error) => {
            printer::say(&error.message);
            return error.code;
        }
    };
    if config.verbose {
        probe.as_ref().err().inspect(|e| printer::say(&format!("file systems are not measured: {e}")));
        subreaper.err().inspect(|e| printer::say(&format!("orphans of the job are not followed: {e}")));
    }
    let pid = child.pid();
    let writer = start_writer(&config, start_unix_ms, start_boottime_ns);
    let settings = sampler::Config {
        options: Options { target: Target::Child(u32::try_from(pid).unwrap_or(0)), ..config.options.clone() },
        interval: config.interval,
        window: config.window,
        start_unix_ms,
        start_boottime_ns,
    };
    let sampler = Sampler::start(settings, probe.ok(), writer);
    let mut recording = None;
    let ended = match sampler {
        Ok(sampler) => child.wait(|| recording = sampler.finish(LAST_SAMPLE)),
        Err(error) => {
            printer::say(&format!("nothing is recorded: no thread could be started ({error})"));
            child.wait(|| {})
        }
    };
    match recording {
        Some(recording) => finish(&config, recording, &ended),
        None => printer::say("the last sample did not come in time; the record ends before it"),
    }
    ended.die_of_interrupt();
    ended.exit_code()
}

fn start_writer(config: &Config, start_unix_ms: i64, start_boottime_ns: u64) -> Writer {
    let key = env_vars::job_key();
    let rank = env_vars::rank().map(|(rank, _)| rank);
    let target = store::Target {
        asked: config.store.clone(),
        cwd: std::env::current_dir().ok(),
        tmpdir: std::env::var_os("TMPDIR").map(PathBuf::from),
        folder: store::folder_name(key.as_deref(), start_unix_ms, std::process::id()),
        rank: rank.unwrap_or(0),
    };
    let about = About {
        job: key.unwrap_or_else(|| target.folder.clone()),
        rank,
        world_size: env_vars::world_size(),
        start_unix_ms,
        start_boottime_ns,
        boot_id: Machine::live()
            .read("/proc/sys/kernel/random/boot_id")
            .ok()
            .map(|id| String::from_utf8_lossy(&id).trim().to_owned()),
        interval: config.interval,
        window: config.window,
        program: config.cmd.first().map(|c| c.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    Writer::start(target, about)
}

fn finish(config: &Config, recording: Recording, ended: &Ended) {
    let (exit_code, signal) = match ended.status {
        ExitKind::Exited(code) => (Some(i32::from(code)), None),
        ExitKind::Signaled { signal, .. } => (None, Some(signal)),
        ExitKind::Unknown => (None, None),
    };
    let end = store::End {
        unix_ms: clock::unix_ms(),
        boottime_ns: clock::boottime_ns(),
        exit_code,
        signal,
        reason: None,
    };
    let finished = recording.writer.finish(end, config.grace);
    let facts = summary::Facts {
        program: config.cmd.first().map(|c| c.to_string_lossy().into_owned()).unwrap_or_default(),
        summary: recording.summary,
        windows: recording.windows,
        ceiling: recording.ceiling,
        ended: ended.status,
        exit_code: ended.exit_code(),
        finished,
    };
    match config.json {
        true => printer::block(&summary::json(&facts).to_string()),
        false => printer::block(&summary::text(&facts)),
    }
}
