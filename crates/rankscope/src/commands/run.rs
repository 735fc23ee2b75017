//! `rankscope run -- CMD`: start a command, record what it uses, and end with its exit code, whatever happens to us.

mod delivering;
mod summary;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rankscope_core::ending::Ending;

use crate::machine::Machine;
use crate::mlflow;
use crate::mlflow::sink::Sink;
use crate::printer;
use crate::probe::Client;
use crate::sampler::{Recording, Sampler};
use crate::sources::{Options, Target};
use crate::store::{self, About, Writer};
use crate::supervise::{self, Ended};
use crate::tee::Tee;
use crate::{clock, ending, env_vars, sampler};

pub use delivering::MlflowOptions;
use delivering::{Delivering, Job};

pub struct Config {
    pub cmd: Vec<OsString>,
    pub store: Option<PathBuf>,
    pub interval: Duration,
    pub window: Duration,
    pub options: Options,
    /// Keep the end of the job's stderr.
    pub tee: bool,
    pub grace: Duration,
    pub mlflow: MlflowOptions,
    pub json: bool,
    pub verbose: bool,
}

/// The last sample of a job that has ended may take this long.
const LAST_SAMPLE: Duration = Duration::from_secs(1);
/// What the job has written last is passed on within this time, unless somebody still writes.
const LAST_WORDS: Duration = Duration::from_millis(200);

pub fn run(config: Config) -> u8 {
    if env_vars::disabled() {
        let error = supervise::exec(&config.cmd);
        printer::say(&error.message);
        return error.code;
    }
    supervise::prepare();
    let probe = Client::start();
    let subreaper = supervise::become_subreaper();
    let key = env_vars::job_key();
    let job_key = key.clone().unwrap_or_else(mlflow::fresh_token);
    let delivering = Delivering::prepare(
        &config.mlflow,
        &Job {
            key: &job_key,
            rank: env_vars::rank().map_or(0, |(rank, _)| rank),
            program: &program(&config),
            start_unix_ms: clock::unix_ms(),
        },
    );
    let mut tee = tee(&config);
    let node_kills_before = ending::node_oom_kills();
    let (start_unix_ms, start_boottime_ns) = (clock::unix_ms(), clock::boottime_ns());
    let stderr = tee.as_ref().and_then(Tee::stderr);
    let child = match supervise::start(&config.cmd, &delivering.overlay, stderr) {
        Ok(child) => {
            tee.iter_mut().for_each(Tee::job_has_it);
            child
        }
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
    let about = About {
        job: job_key,
        start_unix_ms,
        start_boottime_ns,
        delivery: delivering.noted(),
        ..about(&config)
    };
    let writer = start_writer(&config, key.as_deref(), about);
    let run_start = delivering.run_start.clone();
    let sink = delivering.start(writer.place(), config.interval, config.window, config.verbose);
    let settings = sampler::Config {
        options: Options { target: Target::Child(u32::try_from(pid).unwrap_or(0)), ..config.options.clone() },
        interval: config.interval,
        window: config.window,
        start_unix_ms,
        start_boottime_ns,
        run_start,
        waker: sink.as_ref().map(Sink::waker),
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
    let seen = ending::Seen {
        ended: &ended,
        samples: recording.as_ref().map(|r| r.seen.clone()),
        node_kills_before,
        start_unix_ms,
        stderr_tail: tee.as_mut().map(|tee| tee.tail(LAST_WORDS)),
    };
    finish(&config, recording, sink, &ended, ending::ending(seen));
    ended.die_of_interrupt();
    ended.exit_code()
}

/// Without its path and its arguments, which may hold secrets.
fn program(config: &Config) -> String {
    let name = config.cmd.first().map(std::path::Path::new).and_then(|path| path.file_name());
    name.map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

fn about(config: &Config) -> About {
    About {
        rank: env_vars::rank().map(|(rank, _)| rank),
        world_size: env_vars::world_size(),
        boot_id: Machine::live()
            .read("/proc/sys/kernel/random/boot_id")
            .ok()
            .map(|id| String::from_utf8_lossy(&id).trim().to_owned()),
        interval: config.interval,
        window: config.window,
        program: program(config),
        ..About::default()
    }
}

fn start_writer(config: &Config, key: Option<&str>, about: About) -> Writer {
    let target = store::Target {
        asked: config.store.clone(),
        cwd: std::env::current_dir().ok(),
        tmpdir: std::env::var_os("TMPDIR").map(PathBuf::from),
        folder: store::folder_name(key, about.start_unix_ms, std::process::id()),
        rank: about.rank.unwrap_or(0),
    };
    Writer::start(target, about)
}

fn tee(config: &Config) -> Option<Tee> {
    if !config.tee {
        return None;
    }
    Tee::start()
        .inspect_err(|error| {
            printer::say(&format!("--tee: no helper could be started ({error}); going without"))
        })
        .ok()
}

/// Closes the record, delivers what is left, and tells; all in all within the grace.
fn finish(config: &Config, recording: Option<Recording>, sink: Option<Sink>, ended: &Ended, end: Ending) {
    let deadline = Instant::now() + config.grace;
    ending::write_termination_log(&end);
    let Some(recording) = recording else {
        printer::say("the last sample did not come in time; the record ends before it");
        let outcome = sink.map(|sink| sink.finish(end, deadline));
        outcome
            .into_iter()
            .flat_map(|o| o.problem.into_iter().chain(o.urls))
            .for_each(|line| printer::say(&line));
        return;
    };
    recording.writer.event(ending::event(&end));
    let stored = store::End {
        unix_ms: end.ended_unix_ms,
        boottime_ns: clock::boottime_ns(),
        exit_code: end.exit_code,
        signal: end.signal,
        reason: Some(end.reason.as_str().to_owned()),
    };
    // A disk that fails must leave time to tell the server.
    let finished = recording.writer.finish(stored, config.grace / 2);
    let facts = summary::Facts {
        program: config.cmd.first().map(|c| c.to_string_lossy().into_owned()).unwrap_or_default(),
        summary: recording.summary,
        windows: recording.windows,
        ceiling: recording.ceiling,
        ended: ended.status,
        exit_code: ended.exit_code(),
        finished,
        mlflow: sink.map(|sink| sink.finish(end.clone(), deadline)),
        ending: end,
    };
    match config.json {
        true => printer::block(&summary::json(&facts).to_string()),
        false => printer::block(&summary::text(&facts)),
    }
}
