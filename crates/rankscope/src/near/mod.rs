//! What happens around a memory limit: the decision to hurry, events for the record, one line for the person, and who
//! holds the memory. The sampler asks it after each sample.

mod top;
mod wake;
mod words;

use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rankscope_core::limit_rises::LimitRises;
use rankscope_core::near_limit::{self, Course, NearLimit};
use rankscope_core::rate::{Tightest, tightest};
use rankscope_core::reading::Readings;
use rankscope_core::sample::{Memory, Sample};
use rankscope_core::series;
use rankscope_core::stall::{self, Stall};
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::printer;
use crate::sources::Sources;
use crate::store::{Event, Writer};
use top::TopProcesses;
use wake::Wakes;

pub use top::{TOP_PROCESSES, looks};
pub use wake::Tell;

/// A stall is said again after so long without one.
const LONG_CALM_NS: u64 = 600_000_000_000;

/// Kinds of events.
pub const NEAR_LIMIT: &str = "near_limit";
pub const CALM_AGAIN: &str = "calm_again";
pub const LIMIT_EVENTS: &str = "limit_events";
pub const MEMORY_STALL: &str = "memory_stall";
const MEMORY_STALL_OVER: &str = "memory_stall_over";

/// In the record: the level where an OOM kill takes us too; empty: none.
pub const OOM_GROUP: &str = "oom_group";
const STACK: usize = 64 << 10;
/// At the end, for what is being said; a job that is slowed down leaves little time for it.
const LAST_WORDS: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

pub struct Near {
    limit: NearLimit,
    near_since_ns: u64,
    stall: Stall,
    stall_said_ns: Option<u64>,
    rises: LimitRises,
    top: TopProcesses,
    wakes: Wakes,
    saying: Vec<JoinHandle<()>>,
}

impl Near {
    pub fn new(tell: Sender<Tell>) -> Near {
        Near {
            limit: NearLimit::default(),
            near_since_ns: 0,
            stall: Stall::default(),
            stall_said_ns: None,
            rises: LimitRises::default(),
            top: TopProcesses::default(),
            wakes: Wakes::new(tell),
            saying: Vec::new(),
        }
    }

    pub fn is_near(&self) -> bool {
        self.limit.is_near()
    }

    /// A sample out of turn was asked for; whether it is worth it.
    pub fn limit_met(&mut self) -> bool {
        self.wakes.take(self.is_near())
    }

    /// Judges a sample.
    pub fn judge(&mut self, sample: &Sample, readings: &Readings) -> Judged {
        let tightest = sample.memory.as_ref().ok().and_then(|m| tightest(m).ok());
        let course = tightest.as_ref().map(|t| course(t, sample, readings));
        let change = self.limit.add(sample.boottime_ns, course.as_ref());
        Judged { tightest, course, change }
    }

    /// Notes and says what there is to; afterwards, since the sample itself is more urgent.
    pub fn tell(&mut self, judged: &Judged, sample: &Sample, sources: &Sources, notes: &Notes) {
        let Judged { tightest, course, change } = judged;
        match change {
            Some(near_limit::Change::Near) => {
                self.near_since_ns = sample.boottime_ns;
                let mut detail = judged.detail();
                detail["seconds_left"] = json!(course.and_then(|c| c.seconds_left).map(round));
                detail["interval_ms"] = json!(notes.interval.as_millis() as u64);
                notes.event(NEAR_LIMIT, detail, sample);
            }
            Some(near_limit::Change::Calm) => {
                let seconds = sample.boottime_ns.saturating_sub(self.near_since_ns) as f64 / 1e9;
                let mut detail = judged.detail();
                detail["seconds_near"] = json!(round(seconds));
                notes.event(CALM_AGAIN, detail, sample);
            }
            None => {}
        }
        let stall_changed = self.stalled(sample, notes);
        if let Ok(memory) = &sample.memory {
            for rise in self.rises.add(sample.boottime_ns, memory, self.is_near() || stall_changed) {
                let detail = json!({"level": &*rise.level, "high": rise.high, "max": rise.max, "oom": rise.oom,
                    "oom_kill": rise.oom_kill});
                notes.event(LIMIT_EVENTS, detail, sample);
            }
            self.wakes.watch(sources.machine(), memory, tightest.as_ref());
        }
        self.wakes.rearm(sample.boottime_ns, self.is_near());
        if self.top.is_due(sample.boottime_ns, self.is_near()) {
            self.keep_top(sample, sources.machine(), notes);
        }
        if let (Some(tightest), Some(course)) = (tightest, course)
            && self.limit.tell(course)
        {
            self.say(words::near(course, tightest.origin.level.as_deref(), self.top.last()));
        }
    }

    /// Said at the start where an OOM kill would take us too.
    pub fn warn_of_oom_group(&mut self, sources: &Sources, sample: &Sample, writer: &Writer) {
        let limit_level = sample.memory.as_ref().ok().and_then(|m| tightest(m).ok()?.origin.level.clone());
        let level = sources.oom_group_below(limit_level.as_deref());
        writer.note(OOM_GROUP, level.unwrap_or_default().to_owned());
        // Who watches from beside the job most often stands in another cgroup.
        if let Some(level) = level.filter(|_| sources.is_of_child()) {
            self.say(words::oom_group(level));
        }
    }

    /// After the last sample.
    pub fn finish(&mut self, sample: &Sample, machine: &Machine, notes: &Notes) {
        self.keep_top(sample, machine, notes);
        let until = Instant::now() + LAST_WORDS;
        while self.saying.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn keep_top(&mut self, sample: &Sample, machine: &Machine, notes: &Notes) {
        let Ok(processes) = &sample.processes else { return };
        if let Some(detail) = self.top.read(machine, processes, sample.boottime_ns) {
            notes.event(TOP_PROCESSES, detail, sample);
        }
    }

    /// Whether a stall began or is over.
    fn stalled(&mut self, sample: &Sample, notes: &Notes) -> bool {
        let full_us = sample.pressure.as_ref().ok().and_then(|p| p.memory_full.value.clone().ok());
        let change = self.stall.add(sample.boottime_ns, full_us);
        match change {
            Some(stall::Change::Begun { share, seconds }) => {
                let slowed = sample.memory.as_ref().ok().and_then(slowed_at);
                let mut detail =
                    json!({"share": round(share), "seconds": round(seconds), "cause": "reclaim"});
                if let Some((level, high)) = &slowed {
                    detail["cause"] = json!("memory.high");
                    detail["level"] = json!(level);
                    detail["high_bytes"] = json!(high);
                }
                notes.event(MEMORY_STALL, detail, sample);
                let now = sample.boottime_ns;
                let calm = |said: u64| now.saturating_sub(said) >= LONG_CALM_NS;
                if self.stall_said_ns.is_none_or(calm) {
                    self.say(words::stall(share, seconds, slowed));
                }
                self.stall_said_ns = Some(now);
            }
            Some(stall::Change::Over) => {
                self.stall_said_ns = Some(sample.boottime_ns);
                notes.event(MEMORY_STALL_OVER, json!({}), sample);
            }
            None => {}
        }
        change.is_some()
    }

    /// A terminal or a pipe that nobody reads must not hold the sampler up.
    fn say(&mut self, line: String) {
        let thread = std::thread::Builder::new().name("rankscope-say".to_owned()).stack_size(STACK);
        self.saying.retain(|thread| !thread.is_finished());
        self.saying.extend(thread.spawn(move || printer::say(&line)));
    }
}

/// What a sample says about its limit.
pub struct Judged {
    tightest: Option<Tightest>,
    course: Option<Course>,
    change: Option<near_limit::Change>,
}

impl Judged {
    pub fn has_changed(&self) -> bool {
        self.change.is_some()
    }

    fn detail(&self) -> Value {
        let course = self.course.as_ref();
        json!({
            "level": self.tightest.as_ref().and_then(|t| t.origin.level.as_deref()),
            "limit_bytes": course.map(|c| c.limit),
            "held_bytes": course.map(|c| c.held),
            "headroom_bytes": course.map(Course::left_bytes),
        })
    }
}

/// Where events go.
pub struct Notes<'a> {
    pub writer: &'a Writer,
    /// Between samples while memory is near its limit.
    pub interval: Duration,
}

impl Notes<'_> {
    fn event(&self, kind: &str, detail: Value, sample: &Sample) {
        let (unix_ms, boottime_ns) = (sample.unix_ms, sample.boottime_ns);
        self.writer.event(Event { unix_ms, boottime_ns, kind: kind.to_owned(), detail });
    }
}

fn course(tightest: &Tightest, sample: &Sample, readings: &Readings) -> Course {
    let seconds = &series::CONTAINER_MEMORY_TIME_TO_LIMIT;
    let seconds_left = readings.present.iter().find(|r| std::ptr::eq(r.series, seconds)).map(|r| r.value);
    Course { at_ns: sample.boottime_ns, limit: tightest.limit, held: tightest.held, seconds_left }
}

/// The level that stands at its memory.high, or so close to it as reclaim leaves it.
fn slowed_at(memory: &Memory) -> Option<(String, u64)> {
    memory.levels.iter().find_map(|level| {
        let (high, usage) = (level.high?, level.usage.clone().ok()?);
        let level = level.limit.origin.level.as_deref().unwrap_or("?").to_owned();
        (usage as f64 >= high as f64 * 0.97).then_some((level, high))
    })
}

fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
