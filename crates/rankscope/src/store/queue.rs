//! What waits to be written. Bounded; adding to it never waits for the writer, which holds the lock only to take
//! everything out.

use std::collections::VecDeque;

use rankscope_core::reading::Readings;
use rankscope_core::window::Window;

use super::catalog::Moment;
use super::{End, Event, StackWindow};

/// Ticks that wait at most; each of 70 values takes 3 KB.
pub const TICKS: usize = 256;
/// Windows and events that wait at most: more than an hour of windows, each of which takes 6 KB. While a disk is full
/// the ticks of all but the last minutes go first.
pub const OTHERS: usize = 512;

/// Buffers kept for re-use: what a busy second of 10 ms ticks takes.
const SPARE: usize = 128;

#[derive(Debug)]
pub enum Item {
    Tick(Readings),
    Window(Window),
    Events(Vec<Event>),
    Stacks(StackWindow),
    /// A row of `meta`.
    Note(&'static str, String),
    End(End),
}

impl Item {
    /// Committed at once; ticks alone are committed once a second.
    pub fn is_urgent(&self) -> bool {
        !matches!(self, Item::Tick(_))
    }

    pub fn moment(&self) -> Option<Moment> {
        let (unix_ms, boottime_ns) = match self {
            Item::Tick(tick) => (tick.unix_ms, tick.boottime_ns),
            Item::Window(window) => (window.last_unix_ms, window.last_boottime_ns),
            Item::Events(events) => events.last().map(|event| (event.unix_ms, event.boottime_ns))?,
            Item::End(end) => (end.unix_ms, end.boottime_ns),
            Item::Note(..) | Item::Stacks(_) => return None,
        };
        Some(Moment { unix_ms, boottime_ns })
    }
}

/// What did not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    pub ticks: u64,
    /// Windows and events.
    pub others: u64,
}

#[derive(Debug, Default)]
pub struct Queue {
    items: VecDeque<Item>,
    ticks: usize,
    /// Buffers of ticks that were written.
    spare: Vec<Readings>,
    pub lost: Lost,
}

impl Queue {
    pub fn ticks(&self) -> usize {
        self.ticks
    }

    /// Windows, events and the rest.
    pub fn others(&self) -> usize {
        self.items.len() - self.ticks
    }

    pub fn has_urgent(&self) -> bool {
        self.items.len() > self.ticks
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Copies a tick into a buffer that was used before. When the queue is full the oldest tick makes room: what was
    /// last seen before an end counts most.
    pub fn push_tick(&mut self, tick: &Readings) {
        let mut copy = self.take_buffer();
        copy.unix_ms = tick.unix_ms;
        copy.boottime_ns = tick.boottime_ns;
        copy.present.clone_from(&tick.present);
        copy.missing.clone_from(&tick.missing);
        self.items.push_back(Item::Tick(copy));
        self.ticks += 1;
    }

    fn take_buffer(&mut self) -> Readings {
        if self.ticks >= TICKS
            && let Some(at) = self.items.iter().position(|item| !item.is_urgent())
            && let Some(Item::Tick(oldest)) = self.items.remove(at)
        {
            self.ticks -= 1;
            self.lost.ticks += 1;
            return oldest;
        }
        self.spare.pop().unwrap_or_default()
    }

    /// Ticks never take the room of windows and events; the end always finds room.
    pub fn push(&mut self, item: Item) {
        if self.items.len() - self.ticks >= OTHERS
            && let Some(at) = self.items.iter().position(Item::is_urgent)
        {
            self.items.remove(at);
            self.lost.others += 1;
        }
        self.items.push_back(item);
    }

    /// Moves everything into `batch`, which is empty.
    pub fn take(&mut self, batch: &mut Vec<Item>) {
        batch.extend(self.items.drain(..));
        self.ticks = 0;
    }

    /// Takes the buffers of a written batch back, and empties it.
    pub fn recycle(&mut self, batch: &mut Vec<Item>) {
        for item in batch.drain(..) {
            if let Item::Tick(mut tick) = item
                && self.spare.len() < SPARE
            {
                tick.clear();
                self.spare.push(tick);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(unix_ms: i64) -> Readings {
        Readings { unix_ms, ..Readings::default() }
    }

    #[test]
    fn full_of_ticks_the_oldest_goes_and_windows_stay() {
        let mut queue = Queue::default();
        queue.push(Item::Window(Window::default()));
        for t in 0..TICKS as i64 + 10 {
            queue.push_tick(&tick(t));
        }
        assert_eq!(queue.lost, Lost { ticks: 10, others: 0 });
        let mut batch = Vec::new();
        queue.take(&mut batch);
        assert!(matches!(batch[0], Item::Window(_)));
        assert!(matches!(&batch[1], Item::Tick(t) if t.unix_ms == 10));
        assert_eq!(batch.len(), 1 + TICKS);
        queue.recycle(&mut batch);
        assert_eq!((queue.spare.len(), batch.len()), (SPARE, 0));
    }

    #[test]
    fn windows_are_bounded_and_counted() {
        let mut queue = Queue::default();
        for _ in 0..OTHERS + 3 {
            queue.push(Item::Window(Window::default()));
        }
        assert_eq!(queue.lost.others, 3);
    }
}
