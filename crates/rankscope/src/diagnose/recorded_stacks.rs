//! Stacks that a record counted by window → samples. When in its window each was seen is not kept: they are spread over it.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use rankscope_core::diagnose::observations::{Refused, StackSample, Stacks};

use super::past::Span;
use crate::stacks::REFUSED;
use crate::store::{Reader, StackCount, StackWindow};

/// Of all ranks; of more each second, third … one is taken.
const MOST_SAMPLES: usize = 20_000;
/// The golden ratio: multiples of it, without their whole part, lie evenly in [0, 1) however many there are.
const SPREAD: f64 = 0.618_033_988_749_895;

/// Windows, each with the rank of a process of which the record doesn't say it.
#[derive(Default)]
pub struct Recorded {
    windows: Vec<(u32, StackWindow)>,
    refused: Vec<Refused>,
}

impl Recorded {
    pub fn add(&mut self, reader: &Reader, span: Span, own: u32) -> rusqlite::Result<()> {
        let windows = reader.stack_windows(span.from_ms, span.until_ms)?;
        self.windows.extend(windows.into_iter().map(|window| (own, window)));
        let events = reader.events()?.into_iter().filter(|event| event.kind == REFUSED);
        self.refused.extend(events.filter_map(|e| serde_json::from_value(e.detail).ok()));
        Ok(())
    }

    /// Of the main threads of the ranks, each rank's number in place of a pid.
    pub fn stacks(self, span: Span) -> Stacks {
        let trainers = trainers(&self.windows);
        let mut rows: Vec<(u32, (i64, i64), &StackCount)> = Vec::new();
        for (own, window) in &self.windows {
            let times = (window.start_unix_ms, window.end_unix_ms);
            for row in window.rows.iter().filter(|row| row.main) {
                let rank = row.rank.unwrap_or(*own);
                if trainers.get(&rank) == Some(&row.pid) {
                    rows.push((rank, times, row));
                }
            }
        }
        let all: u64 = rows.iter().map(|(.., row)| row.n).sum();
        let each = all.div_ceil(MOST_SAMPLES as u64).max(1);
        let mut found = Stacks { refused: self.refused, ..Stacks::default() };
        let (mut frames, mut stacks) = (Index::default(), Index::default());
        let mut at = 0;
        for (rank, (start_ms, end_ms), row) in &rows {
            let indices: Vec<u32> = row.frames.iter().map(|frame| frames.of(frame)).collect();
            let stack = stacks.of(&indices);
            for n in 0..row.n {
                at += 1;
                if at % each == 0 {
                    let share = ((n as f64 + 0.5) * SPREAD).fract();
                    let unix_ms = *start_ms as f64 + share * (end_ms - start_ms) as f64;
                    let at_s = (unix_ms - span.from_ms as f64) / 1e3;
                    found.samples.push(StackSample { at_s, stack, ..sample(*rank, row, n) });
                }
            }
        }
        let looked: BTreeSet<(u32, (i64, i64))> =
            rows.iter().map(|(rank, times, _)| (*rank, *times)).collect();
        let looked_ms: i64 = looked.iter().map(|(_, (from, to))| to - from).sum();
        found.rate_hz = (looked_ms > 0).then(|| (all as f64 / looked_ms as f64 * 1e3) as f32);
        (found.frames, found.stacks) = (frames.all, stacks.all);
        found
    }
}

/// The process of each rank that was looked at most: its helpers are looked at less.
fn trainers(windows: &[(u32, StackWindow)]) -> HashMap<u32, u32> {
    let mut looks: HashMap<(u32, u32), u64> = HashMap::new();
    for (own, window) in windows {
        for row in window.rows.iter().filter(|row| row.main) {
            *looks.entry((row.rank.unwrap_or(*own), row.pid)).or_default() += row.n;
        }
    }
    let mut looks: Vec<((u32, u32), u64)> = looks.into_iter().collect();
    looks.sort_by_key(|((_, pid), n)| (*n, std::cmp::Reverse(*pid)));
    looks.into_iter().map(|(rank_and_pid, _)| rank_and_pid).collect()
}

/// The n-th of a row. Of which samples it was so is not kept, but who holds the GIL or collects is awake.
fn sample(rank: u32, row: &StackCount, n: u64) -> StackSample {
    let of = row.of_these;
    let first = |count: Option<u64>| count.map(|count| n < count);
    let last = |count: Option<u64>| count.map(|count| n >= row.n.saturating_sub(count));
    StackSample {
        pid: rank,
        thread: row.thread.clone(),
        main: true,
        gil: first(of.gil),
        gil_elsewhere: last(of.gil_elsewhere),
        asleep: last(of.asleep),
        collecting: first(of.collecting),
        ..StackSample::default()
    }
}

/// Each different thing once, by its number.
struct Index<T> {
    all: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Index<T> {
    fn default() -> Index<T> {
        Index { all: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Index<T> {
    fn of(&mut self, one: &T) -> u32 {
        if let Some(number) = self.numbers.get(one) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(one.clone());
        self.numbers.insert(one.clone(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use rankscope_core::diagnose::observations::Frame;

    use super::*;
    use crate::store::OfThese;

    const SPAN: Span = Span { from_ms: 10_000, until_ms: 20_000, step_ms: 1000.0 };

    fn row(pid: u32, function: &str, n: u64, gil: u64) -> StackCount {
        let frame = Frame { function: function.to_owned(), ..Frame::default() };
        let of_these = OfThese { gil: Some(gil), asleep: Some(n - gil), ..OfThese::default() };
        StackCount { pid, main: true, frames: vec![frame], n, of_these, ..StackCount::default() }
    }

    fn stacks(rows: Vec<StackCount>) -> Stacks {
        let window =
            StackWindow { start_unix_ms: 10_000, end_unix_ms: 20_000, rows, ..StackWindow::default() };
        Recorded { windows: vec![(3, window)], refused: Vec::new() }.stacks(SPAN)
    }

    #[test]
    fn counts_become_samples_that_are_spread_over_their_window() {
        let found = stacks(vec![row(70, "work", 10, 8), row(70, "wait", 10, 0), row(71, "helper", 4, 4)]);
        assert_eq!((found.samples.len(), found.frames.len(), found.rate_hz), (20, 2, Some(2.0)));
        assert!(found.samples.iter().all(|s| s.pid == 3 && s.main && (0.0..10.0).contains(&s.at_s)));
        let in_half =
            |later: bool| found.samples.iter().filter(|s| s.stack == 0 && (s.at_s >= 5.0) == later).count();
        assert_eq!((in_half(false), in_half(true)), (5, 5));
        let count = |of: fn(&StackSample) -> bool| found.samples.iter().filter(|s| of(s)).count();
        assert_eq!((count(|s| s.gil == Some(true)), count(|s| s.asleep == Some(true))), (8, 12));
        assert!(!found.samples.iter().any(|s| s.gil == s.asleep || s.collecting.is_some()));
    }

    #[test]
    fn of_very_many_some_are_taken_in_proportion() {
        let found = stacks(vec![row(7, "a", 60_000, 0), row(7, "b", 20_000, 0)]);
        let of_a = found.samples.iter().filter(|s| s.stack == 0).count();
        assert_eq!((found.samples.len(), of_a), (20_000, 15_000));
    }
}
