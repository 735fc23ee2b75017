//! The loop: tick → sources → rates → windows → store, on a thread of its own. It waits for nothing but the clock, and
//! for the kernel's word that a limit was met.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rankscope_core::diagnose::observations::Refused;
use rankscope_core::ending::{self, Evidence};
use rankscope_core::ranks::Below;
use rankscope_core::rate::{Running, rates};
use rankscope_core::reading::Readings;
use rankscope_core::sample::Sample;
use rankscope_core::summary::{Collector, Summary};
use rankscope_core::window::{Window, Windows};

use crate::ceiling::{CpuCeiling, cpu_ceiling};
use crate::clock::{self, RunStart};
use crate::gpu_faults;
use crate::machine::Machine;
use crate::marks;
use crate::mlflow::sink::Waker;
use crate::near::{Near, Notes, Tell};
use crate::printer;
use crate::probe::Client;
use crate::sources::{Options, Sources};
use crate::stacks;
use crate::store::{self, Writer};

/// File systems are asked once more at the end: a full one may be the reason.
const LAST_ANSWERS: Duration = Duration::from_millis(50);
/// While memory is near its limit.
const HURRIED_INTERVAL: Duration = Duration::from_millis(100);
const HURRIED_WINDOW: Duration = Duration::from_secs(1);
/// The store commits about this often by itself: samples no closer together may as well be committed one by one.
const COMMIT_EACH: Duration = Duration::from_secs(1);

pub struct Config {
    pub options: Options,
    pub interval: Duration,
    pub window: Duration,
    pub start_unix_ms: i64,
    pub start_boottime_ns: u64,
    pub run_start: RunStart,
    /// Who delivers, if somebody does.
    pub waker: Option<Waker>,
    /// Where the training marks what it is at.
    pub marks: Option<marks::Reader>,
    /// Record Python stacks too.
    pub stacks: bool,
}

/// A running sampler.
pub struct Sampler {
    tell: Sender<Tell>,
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
        let (tell, told) = mpsc::channel();
        let near = Near::new(tell.clone());
        let (hand_back, done) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("rankscope-sampler".to_owned())
            .stack_size(256 << 10)
            .spawn(move || {
            let recording = Loop::new(config, probe, writer, near).run(&told);
            // Nobody listens any more when the last sample came too late.
            let _ = hand_back.send(recording);
        })?;
        Ok(Sampler { tell, done, thread })
    }

    /// Takes the last sample and ends. `None` when that takes longer than `limit`: a kernel file that blocks must not
    /// keep the job's end back.
    pub fn finish(self, limit: Duration) -> Option<Recording> {
        let _ = self.tell.send(Tell::Stop);
        let recording = self.done.recv_timeout(limit).ok()?;
        let _ = self.thread.join();
        Some(recording)
    }
}

struct Loop {
    interval: Duration,
    window: Duration,
    sources: Sources,
    running: Running,
    windows: Windows,
    run_start: RunStart,
    collector: Collector,
    watch: ending::Watch,
    writer: Writer,
    waker: Option<Waker>,
    near: Near,
    closed: u64,
    previous: Option<Sample>,
    /// The one before that.
    earlier: Option<Sample>,
    readings: Readings,
    /// As noted in the record.
    ranks: Below,
    stacks: Option<stacks::recording::Recording>,
}

impl Loop {
    fn new(config: Config, probe: Option<Client>, writer: Writer, near: Near) -> Loop {
        let mut sources = Sources::new(Machine::live(), config.options, probe);
        sources.marks = config.marks;
        let no_thread = |error: &std::io::Error| {
            printer::say(&format!("stacks are not recorded: no thread could be started ({error})"));
        };
        let stacks = config.stacks.then(stacks::recording::Recording::start);
        writer.note("node", sources.host.node_name.clone());
        Loop {
            interval: config.interval,
            window: config.window,
            sources,
            running: Running::default(),
            windows: Windows::new(config.start_unix_ms, config.start_boottime_ns, nanoseconds(config.window)),
            run_start: config.run_start,
            collector: Collector::default(),
            watch: ending::Watch::default(),
            writer,
            waker: config.waker,
            near,
            closed: 0,
            previous: None,
            earlier: None,
            readings: Readings::default(),
            ranks: Below::default(),
            stacks: stacks.and_then(|started| started.inspect_err(no_thread).ok()),
        }
    }

    fn run(mut self, told: &Receiver<Tell>) -> Recording {
        self.tick(false);
        if let Some(sample) = &self.previous {
            self.near.warn_of_oom_group(&self.sources, sample, &self.writer);
        }
        let mut due = Instant::now() + self.pace();
        loop {
            match told.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Err(RecvTimeoutError::Timeout) => {
                    self.tick(false);
                    // Late (the machine was asleep, or too busy): go on from now instead of catching up.
                    due = (due + self.pace()).max(Instant::now());
                }
                // Out of turn, which leaves the turns where they are unless these come closer now.
                Ok(Tell::LimitMet) if self.near.limit_met() => {
                    self.tick(true);
                    due = due.min(Instant::now() + self.pace());
                }
                Ok(Tell::LimitMet) => {}
                Ok(Tell::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.sources.wait_for_file_systems(LAST_ANSWERS);
        self.tick(true);
        if let Some(sample) = &self.previous {
            let notes = Notes { writer: &self.writer, interval: self.hurried() };
            self.near.finish(sample, self.sources.machine(), &notes);
        }
        if let Some(window) = self.windows.close() {
            self.keep(window);
        }
        if let Some(stacks) = self.stacks.take() {
            stacks.finish();
        }
        if let Some(lost) = self.sources.marks.as_ref().map(|marks| marks.lost).filter(|lost| *lost > 0) {
            self.writer.note("dropped_phases", lost.to_string());
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

    /// Who reads the window finds the ranks in the record.
    fn keep(&mut self, window: Window) {
        if let Some(found) = self.sources.look_for_ranks().filter(|found| **found != self.ranks) {
            self.ranks = found.clone();
            self.writer.note(store::RANKS, serde_json::to_string(found).unwrap_or_default());
        }
        self.closed += 1;
        if let Some(stacks) = &mut self.stacks {
            let times = (window.start_unix_ms, window.end_unix_ms);
            let (seen, refused) = stacks.window(times, window.last_boottime_ns);
            self.writer.stacks(seen);
            refused.iter().for_each(|refused| self.refused(refused));
        }
        self.writer.window(window);
    }

    /// Each rule once.
    fn refused(&self, refused: &Refused) {
        let detail = serde_json::to_value(refused).unwrap_or_default();
        self.writer.event(store::Event {
            unix_ms: clock::unix_ms(),
            boottime_ns: clock::boottime_ns(),
            kind: stacks::REFUSED.to_owned(),
            detail,
        });
        let remedy = refused.remedies.first().map_or(String::new(), |remedy| format!("; {remedy}"));
        printer::say(&format!("no stacks of process {}: {}{remedy}", refused.pid, refused.detail));
    }

    fn hurried(&self) -> Duration {
        self.interval.min(HURRIED_INTERVAL)
    }

    /// The interval in force.
    fn pace(&self) -> Duration {
        if self.near.is_near() { self.hurried() } else { self.interval }
    }

    fn tick(&mut self, commit: bool) {
        let sample = self.sources.read();
        // A sample close behind another (after a late one; the job's last) is measured against the one before: over
        // a millisecond the steps in which the kernel counts are all that there is to see.
        let since = |s: &Sample| Duration::from_nanos(sample.boottime_ns.saturating_sub(s.boottime_ns));
        let close =
            self.earlier.is_some() && self.previous.as_ref().is_some_and(|p| since(p) < self.pace() / 2);
        let base = if close { &self.earlier } else { &self.previous };
        rates(base.as_ref(), &sample, &mut self.running, &mut self.readings);
        if let Some(unix_ms) = self.run_start.get() {
            self.windows.align(unix_ms);
        }
        let judged = self.near.judge(&sample, &self.readings);
        let near = self.near.is_near();
        if judged.has_changed() {
            let length = if near { self.window.min(HURRIED_WINDOW) } else { self.window };
            self.windows.set_length(nanoseconds(length));
        }
        let window = self.windows.add(&self.readings);
        let closed = window.is_some();
        window.into_iter().for_each(|window| self.keep(window));
        self.writer.tick(&self.readings);
        if commit || near || self.interval >= COMMIT_EACH {
            self.writer.flush();
        }
        if let Some(waker) = self.waker.as_ref().filter(|_| closed && (near || judged.has_changed())) {
            waker.wake();
        }
        let notes = Notes { writer: &self.writer, interval: self.hurried() };
        self.near.tell(&judged, &sample, &self.sources, &notes);
        if !sample.training.phases.is_empty() {
            self.writer.events(marks::events(&sample));
        }
        gpu_faults::tell(&sample, &self.writer);
        if let (Some(stacks), Ok(processes)) = (&mut self.stacks, &sample.processes) {
            stacks.look(&processes.list);
        }
        self.collector.add(&sample, &self.readings);
        self.watch.add(&sample);
        let previous = self.previous.replace(sample);
        if !close {
            self.earlier = previous;
        }
    }
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
