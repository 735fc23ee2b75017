//! What was seen, each frame and each stack once; bounded, and what found no room is counted.

use std::collections::HashMap;
use std::hash::Hash;

use rankscope_core::diagnose::observations::{Frame, Refused, StackSample, Stacks};

use super::native;
use super::process::{Place, Seen};

const MAX_FRAMES: usize = 20_000;
const MAX_STACKS: usize = 20_000;
/// Of main threads an hour at 20 a second and more; of the others less, so that they never take the room.
const MAX_SAMPLES: usize = 200_000;
const MAX_OTHER_SAMPLES: usize = 100_000;

#[derive(Default)]
pub struct Table {
    frames: Interned<Frame>,
    stacks: Interned<Vec<u32>>,
    samples: Vec<StackSample>,
    others: usize,
    dropped: u64,
    failed: u64,
    /// Readings of main processes, and the seconds from one to the next.
    main_readings: u64,
    main_seconds: f64,
    refused: HashMap<u32, Refused>,
    /// Processes that nothing is left for.
    left_out: u32,
    /// errno
    pub native_refused: Option<i32>,
}

impl Table {
    pub fn add(&mut self, at_s: f64, pid: u32, seen: Vec<Seen>) {
        for seen in seen {
            let full = match seen.main {
                true => self.samples.len() >= MAX_SAMPLES,
                false => self.others >= MAX_OTHER_SAMPLES,
            };
            let stack = if full { None } else { self.intern(seen.frames) };
            let Some(stack) = stack else {
                self.dropped += 1;
                continue;
            };
            let native = match seen.native {
                Place::Function(frame) => self.frames.index(frame, MAX_FRAMES),
                _ => None,
            };
            self.others += usize::from(!seen.main);
            self.samples.push(StackSample {
                at_s,
                pid,
                tid: seen.tid,
                thread: seen.thread,
                main: seen.main,
                stack,
                gil: seen.gil,
                gil_elsewhere: seen.gil_elsewhere,
                collecting: seen.collecting,
                torn_leaf: seen.torn_leaf,
                native,
                asleep: seen.asleep,
                call: seen.call.map(str::to_owned),
            });
        }
    }

    fn intern(&mut self, frames: Vec<Frame>) -> Option<u32> {
        let indices: Option<Vec<u32>> =
            frames.into_iter().map(|frame| self.frames.index(frame, MAX_FRAMES)).collect();
        self.stacks.index(indices?, MAX_STACKS)
    }

    /// One reading of a main process, `seconds` after the one before.
    pub fn count_main(&mut self, seconds: f64) {
        self.main_readings += 1;
        self.main_seconds += seconds;
    }

    pub fn leave_out(&mut self, processes: usize) {
        self.left_out = u32::try_from(processes).unwrap_or(u32::MAX);
    }

    /// A reading that gave nothing.
    pub fn count_failed(&mut self) {
        self.failed += 1;
    }

    pub fn refuse(&mut self, refused: Refused) {
        self.refused.insert(refused.pid, refused);
    }

    pub fn readable(&mut self, pid: u32) {
        self.refused.remove(&pid);
    }

    /// All that was seen; who is refused stays so.
    pub fn take(&mut self) -> Stacks {
        let seen = std::mem::take(self);
        let mut refused: Vec<Refused> = seen.refused.values().cloned().collect();
        refused.sort_unstable_by_key(|r| r.pid);
        self.refused = seen.refused;
        (self.left_out, self.native_refused) = (seen.left_out, seen.native_refused);
        Stacks {
            generators: Vec::new(),
            frames: seen.frames.list,
            stacks: seen.stacks.list,
            samples: seen.samples,
            rate_hz: (seen.main_readings > 1 && seen.main_seconds > 0.0)
                .then(|| (seen.main_readings as f64 / seen.main_seconds) as f32),
            failed: seen.failed,
            dropped: seen.dropped,
            refused,
            left_out: seen.left_out,
            native_refused: seen.native_refused.map(native::rule),
        }
    }
}

struct Interned<T> {
    list: Vec<T>,
    indices: HashMap<T, u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Interned<T> {
        Interned { list: Vec::new(), indices: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Interned<T> {
    /// `None`: it is new, and there is no room.
    fn index(&mut self, value: T, room: usize) -> Option<u32> {
        if let Some(index) = self.indices.get(&value) {
            return Some(*index);
        }
        if self.list.len() >= room {
            return None;
        }
        let index = u32::try_from(self.list.len()).ok()?;
        self.list.push(value.clone());
        self.indices.insert(value, index);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(main: bool, function: &str) -> Seen {
        let frame = Frame { function: function.to_owned(), file: "a.py".to_owned(), line: 1 };
        Seen {
            tid: 1,
            thread: "T".to_owned(),
            main,
            frames: vec![frame],
            gil: Some(true),
            gil_elsewhere: Some(false),
            collecting: Some(false),
            torn_leaf: false,
            native: Place::Unknown,
            asleep: None,
            call: None,
        }
    }

    #[test]
    fn a_stack_is_kept_once() {
        let mut table = Table::default();
        table.add(0.5, 7, vec![seen(true, "a"), seen(false, "b")]);
        table.add(1.0, 7, vec![seen(true, "a")]);
        let stacks = table.take();
        assert_eq!((stacks.frames.len(), stacks.stacks.len(), stacks.samples.len()), (2, 2, 3));
        assert_eq!(stacks.samples[2].stack, stacks.samples[0].stack);
        assert!(table.take().samples.is_empty());
    }

    #[test]
    fn what_finds_no_room_is_counted_and_main_threads_keep_theirs() {
        let mut table = Table::default();
        for i in 0..MAX_STACKS + 10 {
            table.add(0.0, 7, vec![seen(true, &i.to_string())]);
        }
        for _ in 0..MAX_OTHER_SAMPLES + 5 {
            table.add(0.0, 7, vec![seen(false, "0")]);
        }
        table.add(0.0, 7, vec![seen(true, "0")]);
        let stacks = table.take();
        assert_eq!(stacks.dropped, 15);
        assert!(stacks.samples.last().is_some_and(|s| s.main));
    }

    #[test]
    fn who_is_refused_stays_so_until_it_can_be_read() {
        let mut table = Table::default();
        table.refuse(Refused { pid: 7, ..Refused::default() });
        assert_eq!(table.take().refused.len(), 1);
        assert_eq!(table.take().refused.len(), 1);
        table.readable(7);
        assert!(table.take().refused.is_empty());
    }
}
