//! `rankscope run -- CMD`: start a command, record what it uses, and end with its exit code, whatever happens to us.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rankscope_core::ending::Traceback;

use super::record::delivering::{Delivering, Job};
use super::record::{self, End, Recorder, Subject};
use crate::marks::{self, Ring};
use crate::probe::Client;
use crate::sources::Target;
use crate::supervise;
use crate::tee::Tee;
use crate::{clock, ending, env_vars, mlflow, printer};

pub struct Config {
    pub cmd: Vec<OsString>,
    /// Keep the end of the job's stderr.
    pub tee: bool,
    /// Make a run first and tell the job its id.
    pub export_run_id: bool,
    pub record: record::Config,
}

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
    let job = env_vars::Job::ours();
    let key = job.key.clone().unwrap_or_else(mlflow::fresh_token);
    let program = program(&config.cmd);
    let mut delivering = Delivering::prepare(&config.record.mlflow, &job);
    let told = Job {
        key: &key,
        rank: job.place.rank.unwrap_or(0),
        program: &program,
        start_unix_ms: clock::unix_ms(),
    };
    delivering.tell_job(&told, config.export_run_id);
    delivering.problems.iter().for_each(|problem| printer::say(problem));
    let marks = Ring::shared().ok().map(|ring| marks::Reader::new(Arc::new(ring)));
    let mut tee = tee(&config);
    let (start_unix_ms, start_boottime_ns) = (clock::unix_ms(), clock::boottime_ns());
    if let Some(path) = marks.as_ref().and_then(marks::Reader::path) {
        delivering.overlay.push((marks::ENVIRONMENT, path));
    }
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
    if config.record.verbose {
        probe.as_ref().err().inspect(|e| printer::say(&format!("file systems are not measured: {e}")));
        subreaper.err().inspect(|e| printer::say(&format!("orphans of the job are not followed: {e}")));
    }
    let target = Target::Child(u32::try_from(child.pid()).unwrap_or(0));
    let subject = Subject { target, program, job, key, marks, start_unix_ms, start_boottime_ns };
    let mut recorder = Recorder::start(&config.record, subject, delivering, probe.ok());
    let ended = child.wait(|| recorder.take_last_sample());
    let end = End {
        exit: ending::exit_of(&ended),
        told_by: "waitid",
        asked: ending::asked(&ended),
        traceback: tee.as_mut().and_then(|tee| Traceback::last_in(&tee.tail(LAST_WORDS), "--tee")),
    };
    recorder.finish(&config.record, Some(end));
    ended.die_of_interrupt();
    ended.exit_code()
}

fn program(cmd: &[OsString]) -> String {
    let name = cmd.first().map(Path::new).and_then(Path::file_name);
    name.map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
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
