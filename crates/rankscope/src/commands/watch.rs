//! `rankscope watch --pid P`: record a process that is running already, from beside it, until it ends. It is only looked
//! at; when we are asked to end, it goes on.

use rankscope_core::ending::Exit;

use super::exit;
use super::record::delivering::Delivering;
use super::record::{self, End, Recorder, Subject};
use crate::probe::Client;
use crate::sources::Target;
use crate::watched::{Requests, Watched, Woken};
use crate::{clock, env_vars, environ, mlflow, printer};

pub struct Config {
    pub pid: u32,
    pub record: record::Config,
}

pub fn watch(config: &Config) -> Result<u8, String> {
    let requests = Requests::take().map_err(|error| format!("signals can't be waited for: {error}"))?;
    let process = Watched::open(config.pid)?;
    let job = env_vars::Job::watched(&environ::of(process.pid()));
    let key = job.key.clone().unwrap_or_else(mlflow::fresh_token);
    let probe = Client::start();
    if config.record.verbose {
        probe.as_ref().err().inspect(|e| printer::say(&format!("file systems are not measured: {e}")));
    }
    let mut delivering = Delivering::prepare(&config.record.mlflow, &job);
    delivering.without_adoption();
    delivering.problems.iter().for_each(|problem| printer::say(problem));
    let subject = Subject {
        target: Target::Process(process.pid()),
        program: process.program(),
        job,
        key,
        marks: None,
        start_unix_ms: clock::unix_ms(),
        start_boottime_ns: clock::boottime_ns(),
    };
    let mut recorder = Recorder::start(&config.record, subject, delivering, probe.ok());
    let end = match process.wait(&requests) {
        Woken::Ended => {
            let zombie = process.exit_of_zombie();
            recorder.take_last_sample();
            let told = zombie.or_else(|| process.exit_of_reaped());
            let (exit, told_by) = told.unwrap_or((Exit::Hidden, "end of /proc/<pid>"));
            Some(End { exit, told_by, asked: None, traceback: None })
        }
        Woken::Asked => {
            recorder.take_last_sample();
            None
        }
    };
    recorder.finish(&config.record, end);
    Ok(exit::DONE)
}
