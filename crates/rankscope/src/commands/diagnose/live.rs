//! A live job, for a window of time.

use std::io::IsTerminal;
use std::time::Duration;

use rankscope_core::diagnose::findings::Overhead;

use super::{Config, Run, Seen};
use crate::diagnose::{Request, Seen as SoFar, target, watch};
use crate::machine::Machine;
use crate::printer::{self, Progress};
use crate::watched::Requests;

const USUAL: Duration = Duration::from_secs(60);

pub fn look(config: &Config) -> Result<Seen, String> {
    let machine = Machine::live();
    let looked = match config.pid {
        Some(pid) => target::given(&machine, pid)?,
        None => target::newest(&machine)?,
    };
    let run = Run::of_process(looked.anchor, config.tracking_uri.as_deref());
    let length = config.duration.unwrap_or(USUAL);
    printer::say(&format!(
        "looking at {}, for {:.0} s (Ctrl-C: that is enough)",
        looked.words,
        length.as_secs_f64()
    ));
    // Before any thread is started.
    let requests = Requests::take().map_err(|e| e.to_string())?;
    let progress =
        std::io::stderr().is_terminal().then(|| Progress::new("looked", length.as_secs() as i64, "s"));
    let watched = watch(
        Request { looked, length, no_gpu: config.no_gpu },
        &mut |pause| requests.came_within(pause),
        &mut |so_far| {
            if let Some(progress) = &progress {
                progress.at(so_far.at_s as i64);
                progress.note(words(&so_far));
            }
        },
    );
    if let Some(progress) = &progress {
        progress.clear();
    }
    requests.end();
    let watched = watched?;
    let seen_s = watched.observations.slots as f64 * watched.observations.slot_seconds;
    if watched.observations.slots == 0 {
        return Err("nothing was seen yet: look longer".to_owned());
    }
    if watched.ended {
        printer::say(&format!("the job ended after {seen_s:.1} s; what was seen until then is diagnosed"));
    }
    let overhead = Overhead {
        cpu_seconds: Some(watched.cpu_s),
        proc_cpu_seconds: Some((watched.cpu_s - watched.stacks_cpu_s).max(0.0)),
        stacks_cpu_seconds: Some(watched.stacks_cpu_s),
        ..Overhead::default()
    };
    Ok(Seen { observations: watched.observations, overhead, run })
}

fn words(so_far: &SoFar) -> String {
    let gpu = so_far.gpu_utilization.map(|p| format!(", GPU {p:.0} % on average")).unwrap_or_default();
    let cores = so_far.cores.map(|c| format!(", {c:.1} cores")).unwrap_or_default();
    format!("s: {} processes{cores}{gpu}", so_far.processes)
}
