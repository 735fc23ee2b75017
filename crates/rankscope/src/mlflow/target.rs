//! One run that gets windows of a record: where it is, and what goes to it next.

use rankscope_core::deliver::names::{Subjects, Writer, rank_width};
use rankscope_core::deliver::points::{Classes, Renderer};
use rankscope_core::deliver::thin::{Group, Groups, Thinning};
use rankscope_core::deliver::{StoredWindow, Timeline};

use super::plan::Plan;
use super::types::{Metric, Run};
use super::whose::{How, Life, gets};
use crate::clock;
use crate::store::{Delivered, DeliveryRun, NewRow, Reader, Record};

/// Windows in one read of the store: short, since a reader may keep the writer waiting.
const READ: usize = 32;
/// Windows that go out again at most when something becomes ours.
const REWIND: i64 = 30;
/// Points that are enough for a request.
const ENOUGH: usize = 900;

/// What a target is made of.
pub struct Context<'a> {
    pub reader: &'a Reader,
    pub record: &'a Record,
    pub plan: &'a Plan,
    pub server: &'a str,
}

/// The runs that share the windows, oldest first, and which of them is meant.
pub struct Share<'a> {
    pub lives: &'a [Life],
    pub at: usize,
    /// No window will follow.
    pub over: bool,
}

pub struct Target {
    pub row: DeliveryRun,
    pub run: Run,
    pub how: How,
    pub subjects: Subjects,
    pub timeline: Timeline,
    pub classes: Classes,
    /// A window has gone to it in an earlier turn.
    pub has_windows: bool,
    /// Of the provenance that was looked at last.
    pub provenance: Option<[i64; 4]>,
    /// Rendered and not yet known to be with the server; sent again as it is.
    pub pending: Pending,
    /// With the server, and not yet noted in the record.
    pub unnoted: Vec<Delivered>,
    clock: WallClock,
    renderer: Renderer,
    thinning: Thinning,
    groups: Groups,
    /// The newest window that was read.
    scanned: i64,
    known_series: i64,
}

/// Windows are counted from the attempt's start, runs begin and end by the wall clock, which may have been set since.
struct WallClock(Timeline);

/// Less than this is drift, or rounding.
const SET_MS: i64 = 1000;

impl WallClock {
    fn set_by_ms(&self, window: &StoredWindow) -> i64 {
        let since_ms = window.last_boottime_ns.saturating_sub(self.0.attempt_boottime_ns) / 1_000_000;
        let set_by = window.last_unix_ms.saturating_sub(self.0.attempt_unix_ms).saturating_sub(since_ms);
        if set_by.abs() < SET_MS { 0 } else { set_by }
    }
}

#[derive(Default)]
pub struct Pending {
    pub metrics: Vec<Metric>,
    pub groups: Vec<Delivered>,
}

impl Target {
    pub fn new(context: &Context, run: Run, how: How) -> rusqlite::Result<Target> {
        let Context { reader, record, plan, server } = *context;
        let number = |key: &str| run.tag(key).and_then(|v| v.parse::<i64>().ok());
        let row = reader.delivery_run(&NewRow {
            server: server.to_owned(),
            run_id: run.id.clone(),
            experiment_id: run.experiment_id.clone(),
            how: how.as_str().to_owned(),
            start_unix_ms: run.start_time_ms.unwrap_or(record.attempt.start_unix_ms),
            attempt: number("rankscope.attempt")
                .filter(|_| how == How::Attached)
                .unwrap_or(0)
                .saturating_add(1),
            rank_width: number("rankscope.rank_width")
                .filter(|w| (1..=9).contains(w))
                .unwrap_or(rank_width(record.world()) as i64),
        })?;
        let attempt = &record.attempt;
        let subjects = subjects(record, row.new.rank_width);
        let classes = if plan.all_series { Classes::All } else { Classes::Core };
        let timeline = Timeline {
            attempt_unix_ms: attempt.start_unix_ms,
            attempt_boottime_ns: attempt.start_boottime_ns,
            run_start_unix_ms: row.new.start_unix_ms,
        };
        let mut target = Target {
            clock: WallClock(timeline),
            renderer: Renderer::new(timeline, subjects.clone(), classes),
            thinning: Thinning {
                run_start_unix_ms: row.new.start_unix_ms,
                shortest_ms: plan.window_ms.unwrap_or(0).max(record.window_ms as i64),
                record_ms: record.window_ms as i64,
            },
            row,
            run,
            how,
            subjects,
            timeline,
            classes,
            has_windows: false,
            provenance: None,
            pending: Pending::default(),
            unnoted: Vec::new(),
            groups: Groups::default(),
            scanned: 0,
            known_series: 0,
        };
        target.go_on(reader)?;
        Ok(target)
    }

    /// Other names, or other writers, from the next window on. What is ours from an earlier time goes out anew from there:
    /// the rest of those windows is sent as the same bytes.
    pub fn rename(&mut self, reader: &Reader, subjects: Subjects) -> rusqlite::Result<()> {
        let before = std::mem::replace(&mut self.subjects, subjects.clone());
        self.renderer.rename(subjects);
        let has = reader.delivered_windows(self.row.id)?;
        let mut from_unix_ms = i64::MAX;
        for series in reader.series()? {
            self.renderer.learn(&series);
            self.known_series = self.known_series.max(series.id);
            let (old, new) = (before.named(&series), self.subjects.named(&series));
            match (old.writer, new.writer) {
                (Writer::Us { .. }, _) if old.subject == new.subject => {
                    if let Some(value) =
                        has.map(|has| reader.last_value(series.id, has)).transpose()?.flatten()
                    {
                        self.renderer.was_sent(series.id, value);
                    }
                }
                (_, Writer::Us { from_unix_ms: from }) => from_unix_ms = from_unix_ms.min(from),
                _ => {}
            }
        }
        self.provenance = None;
        // Groups of several windows would be cut in two.
        if self.window_ms() <= self.thinning.record_ms {
            let first = reader.window_before(from_unix_ms)?.max(self.scanned - REWIND);
            self.scanned = self.scanned.min(first).max(0);
        }
        Ok(())
    }

    /// Length of the windows that are delivered now.
    pub fn window_ms(&self) -> i64 {
        let end_unix_ms = clock::unix_ms();
        let start_unix_ms = end_unix_ms.saturating_sub(self.thinning.record_ms);
        let window = StoredWindow { start_unix_ms, end_unix_ms, ..StoredWindow::default() };
        self.thinning.slot(&window).length_ms
    }

    /// After what the run has already.
    fn go_on(&mut self, reader: &Reader) -> rusqlite::Result<()> {
        let Some(has) = reader.delivered_windows(self.row.id)? else { return Ok(()) };
        self.scanned = has.1;
        self.learn(reader)?;
        for series in self.renderer.constants() {
            if let Some(value) = reader.last_value(series, has)? {
                self.renderer.was_sent(series, value);
            }
        }
        Ok(())
    }

    fn learn(&mut self, reader: &Reader) -> rusqlite::Result<()> {
        for series in reader.series()? {
            self.renderer.learn(&series);
            self.known_series = self.known_series.max(series.id);
        }
        Ok(())
    }

    /// Renders what comes next, if nothing is pending.
    pub fn fill(&mut self, reader: &Reader, share: &Share) -> rusqlite::Result<()> {
        while self.pending.groups.is_empty() || self.pending.metrics.len() < ENOUGH {
            let windows = reader.windows_after(self.scanned, READ)?;
            if windows.is_empty() {
                let rest = if share.over { self.groups.close() } else { None };
                rest.into_iter().for_each(|group| self.render(&group));
                break;
            }
            for window in windows {
                self.take(reader, window, share)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, reader: &Reader, window: StoredWindow, share: &Share) -> rusqlite::Result<()> {
        let id = window.id;
        let set_by = self.clock.set_by_ms(&window);
        if gets(share.lives, share.at, (window.start_unix_ms + set_by, window.end_unix_ms + set_by)) {
            if window.values.iter().any(|v| v.series > self.known_series) {
                self.learn(reader)?;
            }
            let (slot, completes) = (self.thinning.slot(&window), self.thinning.completes(&window));
            let before = self.groups.add(slot, window);
            let complete = if completes { self.groups.close() } else { None };
            before.into_iter().chain(complete).for_each(|group| self.render(&group));
        }
        self.scanned = id;
        Ok(())
    }

    fn render(&mut self, group: &Group) {
        let mut points = Vec::new();
        self.renderer.render(&group.merged, &mut points);
        self.pending.groups.push(Delivered {
            first_window: group.first_window,
            last_window: group.merged.id,
            length_ms: group.slot.length_ms,
            points: points.len() as i64,
        });
        // What the server would not take can't be built, and is left out.
        let metrics = points.iter().filter_map(|p| Metric::new(&p.key, p.value, p.timestamp_ms, p.step).ok());
        self.pending.metrics.extend(metrics);
    }
}

/// As long as nothing is settled with others.
pub fn subjects(record: &Record, rank_width: i64) -> Subjects {
    let width = usize::try_from(rank_width).unwrap_or(1);
    Subjects::new(record.rank.unwrap_or(0), width, &record.node).of_tree(&record.below.ranks)
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
