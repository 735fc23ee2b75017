//! What `run` and `watch` do alike: a process tree is sampled, stored, delivered, and summed up at its end.

pub mod delivering;
mod gpu;
mod summary;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rankscope_core::ending::{Asked, Ending, Exit, Traceback};
use rankscope_core::ranks::{Launcher, is_launcher};
use rankscope_core::summary::Summary;

use delivering::Delivering;
pub use delivering::MlflowOptions;

use crate::ceiling::CpuCeiling;
use crate::earlier::{self, Attempt};
use crate::marks;
use crate::mlflow::Pace;
use crate::mlflow::sink::{Outcome, Sink};
use crate::probe::Client;
use crate::sampler::{Recording, Sampler};
use crate::sources::{Options, RanksBelow, Target};
use crate::store::{self, About, Finished, Writer};
use crate::{clock, ending, env_vars, printer, sampler};

pub struct Config {
    pub store: Option<PathBuf>,
    pub interval: Duration,
    pub window: Duration,
    pub options: Options,
    /// Python stacks too.
    pub stacks: bool,
    pub grace: Duration,
    pub mlflow: MlflowOptions,
    pub json: bool,
    pub verbose: bool,
}

/// What is recorded.
pub struct Subject {
    pub target: Target,
    /// Without its path and its arguments, which may hold secrets.
    pub program: String,
    pub job: env_vars::Job,
    /// The KEY, also of a recorder that stands alone.
    pub key: String,
    /// Where the training marks what it is at.
    pub marks: Option<marks::Reader>,
    pub start_unix_ms: i64,
    pub start_boottime_ns: u64,
}

/// How it ended.
pub struct End {
    pub exit: Exit,
    /// The call that told of it.
    pub told_by: &'static str,
    pub asked: Option<Asked>,
    /// As the job itself told it.
    pub traceback: Option<Traceback>,
}

/// The last sample of a job that has ended may take this long.
const LAST_SAMPLE: Duration = Duration::from_secs(1);

pub struct Recorder {
    program: String,
    rank: u32,
    start_unix_ms: i64,
    node_kills_before: Option<u64>,
    sampler: Option<Sampler>,
    recording: Option<Recording>,
    sink: Option<Sink>,
}

impl Recorder {
    pub fn start(
        config: &Config,
        subject: Subject,
        delivering: Delivering,
        probe: Option<Client>,
    ) -> Recorder {
        let node_kills_before = ending::node_oom_kills();
        let rank = subject.job.place.rank.unwrap_or(0);
        let (program, start_unix_ms) = (subject.program.clone(), subject.start_unix_ms);
        let run_start = delivering.run_start.clone();
        let writer = start_writer(config, &subject, &delivering);
        if let Some(conflict) = &subject.job.place.conflict {
            printer::say(&format!("rank: {conflict}"));
            writer.note("rank_conflict", conflict.clone());
        }
        let pace = Pace::new(config.window, subject.job.place.rank, subject.job.place.world_size);
        let sink = delivering.start(writer.place(), config.interval, pace, config.verbose);
        let settings = sampler::Config {
            options: Options {
                target: subject.target,
                job: subject.job.key.clone(),
                // Below torchrun every process is of one rank.
                ranks_below: match subject.job.place.launcher {
                    Some(Launcher::Torchrun) => RanksBelow::Ignored,
                    own => RanksBelow::Said { own, launcher: is_launcher(program.as_bytes()) },
                },
                ..config.options.clone()
            },
            interval: config.interval,
            window: config.window,
            start_unix_ms,
            start_boottime_ns: subject.start_boottime_ns,
            run_start,
            waker: sink.as_ref().map(Sink::waker),
            marks: subject.marks,
            stacks: config.stacks,
        };
        let sampler = Sampler::start(settings, probe, writer).inspect_err(|error| {
            printer::say(&format!("nothing is recorded: no thread could be started ({error})"));
        });
        let sampler = sampler.ok();
        Recorder { program, rank, start_unix_ms, node_kills_before, sampler, recording: None, sink }
    }

    /// While the process can still be seen, or as soon after that as can be.
    pub fn take_last_sample(&mut self) {
        self.recording = self.sampler.take().and_then(|sampler| sampler.finish(LAST_SAMPLE));
    }

    /// What the end was, from everything that was seen.
    pub fn explain(&self, end: End) -> Ending {
        ending::ending(ending::Seen {
            exit: end.exit,
            told_by: end.told_by,
            asked: end.asked,
            samples: self.recording.as_ref().map(|r| r.seen.clone()),
            node_kills_before: self.node_kills_before,
            start_unix_ms: self.start_unix_ms,
            traceback: end.traceback,
        })
    }

    /// Closes the record and delivers what is left, within the grace, which begins with our turn where many ranks end
    /// together. `None`: the process goes on.
    pub fn close(self, grace: Duration, ending: Option<Ending>) -> Closed {
        let ended = Instant::now();
        let recorded = self.recording.map(|recording| {
            recording.writer.event(ending.as_ref().map_or_else(ending::unwatched, ending::event));
            Recorded {
                summary: recording.summary,
                windows: recording.windows,
                ceiling: recording.ceiling,
                // A disk that fails must leave time to tell the server.
                finished: recording.writer.finish(ending.as_ref().map(stored), grace / 2),
            }
        });
        Closed { recorded, mlflow: self.sink.map(|sink| sink.finish(ending, ended, grace)) }
    }

    /// The same, and tells.
    pub fn finish(self, config: &Config, end: Option<End>) {
        let exit = end.as_ref().map_or(Exit::Unseen, |end| end.exit);
        let ending = end.map(|end| self.explain(end));
        ending.iter().for_each(ending::write_termination_log);
        let (program, rank) = (self.program.clone(), self.rank);
        let closed = self.close(config.grace, ending.clone());
        let Some(recorded) = closed.recorded else {
            printer::say(NO_LAST_SAMPLE);
            let outcome = closed.mlflow.into_iter();
            outcome.flat_map(|o| o.problem.into_iter().chain(o.urls)).for_each(|line| printer::say(&line));
            return;
        };
        let facts = summary::Facts {
            program,
            rank,
            summary: recorded.summary,
            windows: recorded.windows,
            ceiling: recorded.ceiling,
            exit,
            finished: recorded.finished,
            mlflow: closed.mlflow,
            ending,
        };
        match config.json {
            true => printer::block(&summary::json(&facts).to_string()),
            false => printer::block(&summary::text(&facts)),
        }
    }
}

const NO_LAST_SAMPLE: &str = "the last sample did not come in time; the record ends before it";

/// A recording that is over.
pub struct Closed {
    /// `None`: its last sample did not come.
    recorded: Option<Recorded>,
    mlflow: Option<Outcome>,
}

struct Recorded {
    summary: Summary,
    windows: u64,
    ceiling: Option<CpuCeiling>,
    finished: Finished,
}

impl Closed {
    /// What did not go well, a line each.
    pub fn problems(self) -> Vec<String> {
        let record = match self.recorded {
            Some(recorded) => recorded.finished.problem,
            None => Some(NO_LAST_SAMPLE.to_owned()),
        };
        record.into_iter().chain(self.mlflow.and_then(|outcome| outcome.problem)).collect()
    }
}

fn start_writer(config: &Config, subject: &Subject, delivering: &Delivering) -> Writer {
    let job = &subject.job;
    let about = About {
        job: subject.key.clone(),
        rank: job.place.rank,
        world_size: job.place.world_size,
        start_unix_ms: subject.start_unix_ms,
        start_boottime_ns: subject.start_boottime_ns,
        boot_id: clock::boot_id(),
        interval: config.interval,
        window: config.window,
        program: subject.program.clone(),
        delivery: delivering.noted(),
    };
    let target = store::Target {
        asked: config.store.clone(),
        cwd: std::env::current_dir().ok(),
        tmpdir: std::env::var_os("TMPDIR").map(PathBuf::from),
        folder: store::folder_name(job.key.as_deref(), subject.start_unix_ms, std::process::id()),
        rank: job.place.rank.unwrap_or(0),
    };
    let attempt = Attempt {
        rank: target.rank,
        start_unix_ms: subject.start_unix_ms,
        run_id: delivering.plan.run_id.clone(),
    };
    let places = target.clone();
    Writer::start_with(target, about, move |own| earlier::look(own, &attempt, &places))
}

fn stored(ending: &Ending) -> store::End {
    store::End {
        unix_ms: ending.ended_unix_ms,
        boottime_ns: clock::boottime_ns(),
        exit_code: ending.exit_code,
        signal: ending.signal,
        reason: Some(ending.reason.as_str().to_owned()),
    }
}
