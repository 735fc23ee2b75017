//! Samples outside of a recording: two readings of the running machine or of recorded trees, and their rates.

use std::path::PathBuf;
use std::time::Duration;

use rankscope_core::rate::{Running, rates};
use rankscope_core::reading::Readings;
use rankscope_core::sample::Sample;

use crate::machine::Machine;
use crate::probe::Client;
use crate::sources::{Options, Sources, Target};

/// What to measure, and where.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub pid: Option<u32>,
    pub roots: Vec<PathBuf>,
    pub options: Options,
    pub interval: Duration,
}

/// A sequence of samples with their rates.
pub struct Measurement {
    pub sources: Sources,
    previous: Option<Sample>,
    running: Running,
    pub readings: Readings,
    /// Wall clock is known: a recorded tree may not say.
    pub dated: bool,
}

/// Between the two readings of a command that prints one sample.
const APART: Duration = Duration::from_millis(200);
/// For a driver that has to start first.
const GPUS: Duration = Duration::from_secs(2);
/// For the answers about file systems.
const FILE_SYSTEMS: Duration = Duration::from_millis(300);

impl Measurement {
    /// Takes the first sample, or, of recorded trees, all there are.
    pub fn start(request: &Request) -> Result<Measurement, String> {
        match request.roots.as_slice() {
            [] => Measurement::live(request),
            [one] => Measurement::recorded(request, one, None),
            [first, second] => Measurement::recorded(request, first, Some(second)),
            _ => Err("--root takes one or two trees".to_owned()),
        }
    }

    fn live(request: &Request) -> Result<Measurement, String> {
        let machine = Machine::live();
        if let Some(pid) = request.pid.filter(|pid| !machine.exists(&format!("/proc/{pid}"))) {
            return Err(format!("no process {pid}"));
        }
        let target = request.pid.map_or(Target::Nobody, Target::Process);
        let options = Options { target, ..request.options.clone() };
        let mut sources = Sources::new(machine, options, Client::start().ok());
        sources.wait_for_file_systems(FILE_SYSTEMS);
        sources.wait_for_gpus(GPUS);
        Ok(Measurement::new(sources, true))
    }

    fn recorded(request: &Request, first: &PathBuf, second: Option<&PathBuf>) -> Result<Measurement, String> {
        let open = |root: &PathBuf| {
            let machine = Machine::recorded(root).map_err(|e| format!("{}: {e}", root.display()))?;
            let pid = request.pid.or(machine.recorded_pid());
            let target = pid.map_or(Target::AllRecorded, Target::Process);
            let dated = machine.taken_unix_ms().is_some();
            Ok::<_, String>(Measurement::new(
                Sources::new(machine, Options { target, ..request.options.clone() }, None),
                dated,
            ))
        };
        let mut before = open(first)?;
        let Some(second) = second else { return Ok(before) };
        let mut after = open(second)?;
        let times = (before.times(), after.times());
        // By the kernel's clock, else by the recorder's, else as asked for.
        let elapsed = match times {
            ((Some(t0), _), (Some(t1), _)) if t1 > t0 => t1 - t0,
            ((_, Some(t0)), (_, Some(t1))) if t1 > t0 => t1 - t0,
            _ => request.interval.as_secs_f64(),
        };
        let start = before.previous.take().map(|s| Sample { boottime_ns: 1_000_000_000, ..s });
        let end = after
            .previous
            .take()
            .map(|s| Sample { boottime_ns: 1_000_000_000u64.saturating_add((elapsed * 1e9) as u64), ..s });
        let (Some(start), Some(end)) = (start, end) else {
            return Err("the trees could not be read".to_owned());
        };
        after.running = Running::default();
        rates(None, &start, &mut after.running, &mut after.readings);
        rates(Some(&start), &end, &mut after.running, &mut after.readings);
        after.previous = Some(end);
        Ok(after)
    }

    fn new(mut sources: Sources, dated: bool) -> Measurement {
        let sample = sources.read();
        let mut running = Running::default();
        let mut readings = Readings::default();
        rates(None, &sample, &mut running, &mut readings);
        Measurement { sources, previous: Some(sample), running, readings, dated }
    }

    /// Seconds of boot time, and of wall time.
    fn times(&self) -> (Option<f64>, Option<f64>) {
        let taken = self.sources.machine().taken_unix_ms().map(|ms| ms as f64 / 1000.0);
        (self.sources.host.uptime_seconds, taken)
    }

    /// The sample that `readings` was made of.
    pub fn sample(&self) -> Option<&Sample> {
        self.previous.as_ref()
    }

    /// On the running machine: takes another sample.
    pub fn step(&mut self) {
        if !self.sources.machine().is_live() {
            return;
        }
        let sample = self.sources.read();
        rates(self.previous.as_ref(), &sample, &mut self.running, &mut self.readings);
        self.previous = Some(sample);
    }

    /// On the running machine: a second reading a moment later, so that there are rates.
    pub fn second_reading(&mut self) {
        if self.sources.machine().is_live() {
            std::thread::sleep(APART);
            self.step();
        }
    }
}
