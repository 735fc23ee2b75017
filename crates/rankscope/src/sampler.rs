//! The loop: tick → sources → rates → windows → store, on a thread of its own. It waits for nothing but the clock.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rankscope_core::ending::{self, Evidence};
use rankscope_core::rate::{Running, rates};
use rankscope_core::reading::Readings;
use rankscope_core::sample::Sample;
use rankscope_core::summary::{Collector, Summary};
use rankscope_core::window::Windows;

use crate::ceiling::{CpuCeiling, cpu_ceiling};
use crate::clock::RunStart;
use crate::machine::Machine;
use crate::probe::Client;
use crate::sources::{Options, Sources};
use crate::store::Writer;

/// File systems are asked once more at the end: a full one may be the reason.
const LAST_ANSWERS: Duration = Duration::from_millis(50);

pub struct Config {
    pub options: Options,
    pub interval: Duration,
    pub window: Duration,
    pub start_unix_ms: i64,
    pub start_boottime_ns: u64,
    pub run_start: RunStart,
}

/// A running sampler.
pub struct Sampler {
    stop: Sender<()>,
    done: Receiver<Recording>,
    thread: JoinHandle<()>,
}

/// What the sampler hands back at its end.
pub struct Recording {
    pub writer: Writer,
    pub summary: Summary,
    pub windows: u64,
    pub ceiling: Option<CpuCeiling>,
    /// Of an end that may have come.
    pub seen: Evidence,
}

impl Sampler {
    pub fn start(config: Config, probe: Option<Client>, writer: Writer) -> std::io::Result<Sampler> {
        let (stop, stopped) = mpsc::channel();
        let (hand_back, done) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("rankscope-sampler".to_owned())
            .stack_size(256 << 10)
            .spawn(move || {
            let recording = Loop::new(config, probe, writer).run(&stopped);
            // Nobody listens any more when the last sample came too late.
            let _ = hand_back.send(recording);
        })?;
        Ok(Sampler { stop, done, thread })
    }

    /// Takes the last sample and ends. `None` when that takes longer than `limit`: a kernel file that blocks must not
    /// keep the job's end back.
    pub fn finish(self, limit: Duration) -> Option<Recording> {
        let _ = self.stop.send(());
        let recording = self.done.recv_timeout(limit).ok()?;
        let _ = self.thread.join();
        Some(recording)
    }
}

struct Loop {
    interval: Duration,
    sources: Sources,
    running: Running,
    windows: Windows,
    run_start: RunStart,
    collector: Collector,
    watch: ending::Watch,
    writer: Writer,
    closed: u64,
    previous: Option<Sample>,
    /// The one before that.
    earlier: Option<Sample>,
    readings: Readings,
}

impl Loop {
    fn new(config: Config, probe: Option<Client>, writer: Writer) -> Loop {
        let length = u64::try_from(config.window.as_nanos()).unwrap_or(u64::MAX);
        let sources = Sources::new(Machine::live(), config.options, probe);
        writer.note("node", sources.host.node_name.clone());
        Loop {
            interval: config.interval,
            sources,
            running: Running::default(),
            windows: Windows::new(config.start_unix_ms, config.start_boottime_ns, length),
            run_start: config.run_start,
            collector: Collector::default(),
            watch: ending::Watch::default(),
            writer,
            closed: 0,
            previous: None,
            earlier: None,
            readings: Readings::default(),
        }
    }

    fn run(mut self, stopped: &Receiver<()>) -> Recording {
        let mut due = Instant::now();
        loop {
            self.tick();
            due += self.interval;
            let now = Instant::now();
            // Late (the machine was asleep, or too busy): go on from now instead of catching up.
            due = if due < now { now } else { due };
            match stopped.recv_timeout(due - now) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.sources.wait_for_file_systems(LAST_ANSWERS);
        self.tick();
        if let Some(window) = self.windows.close() {
            self.closed += 1;
            self.writer.window(window);
        }
        let ceiling = self.previous.as_ref().and_then(|sample| cpu_ceiling(&self.sources, sample));
        Recording {
            writer: self.writer,
            summary: self.collector.summary(),
            windows: self.closed,
            ceiling,
            seen: self.watch.evidence(),
        }
    }

    fn tick(&mut self) {
        let sample = self.sources.read();
        // A sample close behind another (after a late one; the job's last) is measured against the one before: over
        // a millisecond the steps in which the kernel counts are all that there is to see.
        let since = |s: &Sample| Duration::from_nanos(sample.boottime_ns.saturating_sub(s.boottime_ns));
        let close =
            self.earlier.is_some() && self.previous.as_ref().is_some_and(|p| since(p) < self.interval / 2);
        let base = if close { &self.earlier } else { &self.previous };
        rates(base.as_ref(), &sample, &mut self.running, &mut self.readings);
        if let Some(unix_ms) = self.run_start.get() {
            self.windows.align(unix_ms);
        }
        if let Some(window) = self.windows.add(&self.readings) {
            self.closed += 1;
            self.writer.window(window);
        }
        self.writer.tick(&self.readings);
        self.collector.add(&sample, &self.readings);
        self.watch.add(&sample);
        let previous = self.previous.replace(sample);
        if !close {
            self.earlier = previous;
        }
    }
}
