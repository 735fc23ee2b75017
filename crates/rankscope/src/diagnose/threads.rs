//! Threads of one process: the CPU time of each (schedstat, by files that stay open), and of those that matter what they
//! wait in.

use std::collections::{HashMap, HashSet};

use rankscope_core::diagnose::observations::Thread;
use rankscope_core::gap::Reason;
use rankscope_core::parse::keyed::lookup;
use rankscope_core::parse::pid as parse;

use super::context::{Context, Kept};
use super::slots::{Rate, put};

/// Threads of a process whose course is kept.
const SEEN: usize = 32;
/// Of the others so many a slot are asked whether they wait for a disk.
const ASKED_A_SLOT: usize = 4;
/// Threads of a process that are read at all.
const MOST: usize = 2048;
const RESCAN_S: f64 = 1.0;
/// Most threads of a job never run: one that has not for so many readings is read each fifth slot. When it wakes up, up
/// to a second of what it does counts as a fifth.
const QUIET: u8 = 10;
const QUIET_EVERY: usize = 5;
/// A thread that used less of the last second is none of those that matter.
const MATTERS: f64 = 0.01;

pub struct Threads {
    pid: u32,
    list: Vec<One>,
    scanned_s: f64,
    /// How many there were then.
    scanned: u64,
    /// Without schedstat: utime and stime, in steps of a tick.
    by_ticks: bool,
    asked: usize,
    /// Of those that ended.
    gone: Vec<(f64, Thread)>,
}

struct One {
    tid: u32,
    file: Kept,
    run: Rate,
    delay: Rate,
    /// CPU seconds since it was first read, and those of them since the last scan.
    used: f64,
    lately: f64,
    read_s: f64,
    /// Readings without a change.
    quiet: u8,
    close: Option<Box<Close>>,
}

/// A thread that matters.
struct Close {
    stat: Kept,
    wchan: Kept,
    switches: Option<(u64, f64)>,
    waits: HashMap<String, u32>,
    thread: Thread,
}

/// Cores, of all threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    pub run: Option<f64>,
    pub delay: Option<f64>,
}

impl Threads {
    pub fn new(cx: &Context, pid: u32) -> Threads {
        let by_ticks = !cx.machine.exists(&format!("/proc/{pid}/task/{pid}/schedstat"));
        let (list, gone) = (Vec::new(), Vec::new());
        Threads { pid, list, scanned_s: f64::NEG_INFINITY, scanned: 0, by_ticks, asked: 0, gone }
    }

    /// `count`: threads that the process has now.
    pub fn read(&mut self, cx: &mut Context, slot: usize, count: Option<u64>) -> Sum {
        let now_s = cx.clock.now_s();
        if now_s - self.scanned_s >= RESCAN_S || count.is_some_and(|n| n != self.scanned) {
            self.scan(cx, now_s);
        }
        let mut sum = Sum::default();
        let by_ticks = self.by_ticks;
        let unit = if by_ticks { cx.machine.units.ticks_per_second.max(1) as f64 } else { 1e9 };
        let mut ended = Vec::new();
        for (at, one) in self.list.iter_mut().enumerate() {
            if one.quiet >= QUIET && one.close.is_none() && !(slot + at).is_multiple_of(QUIET_EVERY) {
                add(&mut sum.run, Some(0.0));
                continue;
            }
            let (run, delay) = match one.file.read(cx, |text| counters(text, by_ticks)) {
                Ok(counters) => counters.unwrap_or((None, None)),
                Err(gap) => {
                    if gap.reason == Reason::Absent {
                        ended.push(at);
                    }
                    continue;
                }
            };
            let at_s = cx.clock.now_s();
            let run = one.run.next(run, at_s).map(|rate| rate / unit);
            let delay = one.delay.next(delay, at_s).map(|rate| rate / 1e9);
            let at_rest = run == Some(0.0) && delay.is_none_or(|d| d == 0.0);
            one.quiet = if at_rest { one.quiet.saturating_add(1) } else { 0 };
            let used = run.map_or(0.0, |cores| cores * (at_s - one.read_s));
            (one.used, one.lately, one.read_s) = (one.used + used, one.lately + used, at_s);
            add(&mut sum.run, run);
            add(&mut sum.delay, delay);
            if let Some(close) = &mut one.close {
                // A counter that moves in steps, or a reading that came late, can show a little more than is possible.
                put(&mut close.thread.on_cpu, slot, run.map(|r| r.min(1.0)));
                put(&mut close.thread.run_delay, slot, delay.map(|d| d.min(1.0)));
            }
        }
        for at in ended.into_iter().rev() {
            let one = self.list.swap_remove(at);
            self.end(cx, one);
        }
        sum
    }

    /// What those that matter do at this moment of the slot.
    pub fn look(&mut self, cx: &mut Context, slot: usize) {
        self.list.iter_mut().filter_map(|one| one.close.as_mut()).for_each(|close| close.read(cx, slot));
        self.look_for_waiting(cx);
    }

    fn scan(&mut self, cx: &mut Context, now_s: f64) {
        let dir = format!("/proc/{}/task", self.pid);
        let tids: Vec<u32> = cx.machine.list(&dir).iter().filter_map(|name| name.parse().ok()).collect();
        self.scanned = tids.len() as u64;
        self.scanned_s = now_s;
        let known: HashSet<u32> = self.list.iter().map(|one| one.tid).collect();
        for tid in tids.into_iter().filter(|tid| !known.contains(tid)) {
            if self.list.len() >= MOST {
                break;
            }
            let file = cx.keep(format!("{dir}/{tid}/{}", if self.by_ticks { "stat" } else { "schedstat" }));
            let mut one = One {
                tid,
                file,
                run: Rate::default(),
                delay: Rate::default(),
                used: 0.0,
                lately: 0.0,
                read_s: now_s,
                quiet: 0,
                close: None,
            };
            if tid == self.pid {
                one.close = Some(Close::new(cx, self.pid, tid));
            }
            self.list.push(one);
        }
        self.choose(cx);
    }

    /// Those that used most since the last scan, instead of those that used least in all.
    fn choose(&mut self, cx: &mut Context) {
        let mut hot: Vec<usize> = (0..self.list.len())
            .filter(|at| self.list[*at].close.is_none() && self.list[*at].lately >= MATTERS)
            .collect();
        hot.sort_by(|a, b| self.list[*b].lately.total_cmp(&self.list[*a].lately));
        for at in hot.into_iter().take(SEEN) {
            let close = self.list.iter().filter(|one| one.close.is_some()).count();
            if close >= SEEN || cx.threads_room == 0 {
                let others = self.list.iter_mut().filter(|one| one.close.is_some() && one.tid != self.pid);
                let Some(coldest) = others.min_by(|a, b| a.used.total_cmp(&b.used)) else { break };
                let (tid, used) = (coldest.tid, coldest.used);
                if used >= self.list[at].used {
                    break;
                }
                let coldest = self.list.iter_mut().find(|one| one.tid == tid);
                let dropped = coldest.and_then(|one| one.close.take());
                dropped.iter().for_each(|close| close.give_back(cx));
                cx.threads_room += 1;
            }
            let tid = self.list[at].tid;
            cx.threads_room -= 1;
            self.list[at].close = Some(Close::new(cx, self.pid, tid));
        }
        self.list.iter_mut().for_each(|one| one.lately = 0.0);
    }

    /// A thread that waits for a disk uses no CPU: some of the others are asked in each slot, all in turn.
    fn look_for_waiting(&mut self, cx: &mut Context) {
        let n = self.list.len();
        let mut close = self.list.iter().filter(|one| one.close.is_some()).count();
        for _ in 0..ASKED_A_SLOT.min(n) {
            if close >= SEEN || cx.threads_room == 0 {
                return;
            }
            self.asked = (self.asked + 1) % n;
            let one = &mut self.list[self.asked];
            if one.close.is_some() {
                continue;
            }
            let path = format!("/proc/{}/task/{}/stat", self.pid, one.tid);
            let text = cx.machine.read(&path).unwrap_or_default();
            if parse::stat(&text).is_ok_and(|stat| stat.state == 'D') {
                one.close = Some(Close::new(cx, self.pid, one.tid));
                cx.threads_room -= 1;
                close += 1;
            }
        }
    }

    fn end(&mut self, cx: &mut Context, one: One) {
        cx.give_back(&one.file);
        if let Some(close) = one.close {
            close.give_back(cx);
            if self.gone.len() < SEEN {
                self.gone.push((one.used, close.finish(None)));
            }
        }
    }

    /// The main thread first, then those that used most.
    pub fn finish(&mut self, cx: &mut Context) -> Vec<Thread> {
        let mut all = std::mem::take(&mut self.gone);
        for one in std::mem::take(&mut self.list) {
            cx.give_back(&one.file);
            if let Some(close) = one.close {
                close.give_back(cx);
                let switches = switches(cx, self.pid, one.tid);
                all.push((one.used, close.finish(switches)));
            }
        }
        all.sort_by(|(a, one), (b, other)| {
            (other.tid == self.pid).cmp(&(one.tid == self.pid)).then(b.total_cmp(a))
        });
        all.truncate(SEEN);
        all.into_iter().map(|(_, thread)| thread).collect()
    }
}

impl Close {
    fn new(cx: &mut Context, pid: u32, tid: u32) -> Box<Close> {
        let dir = format!("/proc/{pid}/task/{tid}");
        Box::new(Close {
            stat: cx.keep(format!("{dir}/stat")),
            wchan: cx.keep(format!("{dir}/wchan")),
            switches: switches(cx, pid, tid),
            waits: HashMap::new(),
            thread: Thread { tid, ..Thread::default() },
        })
    }

    fn give_back(&self, cx: &mut Context) {
        cx.give_back(&self.stat);
        cx.give_back(&self.wchan);
    }

    fn read(&mut self, cx: &mut Context, slot: usize) {
        let found = self.stat.read(cx, |text| {
            let stat = parse::stat(text).ok()?;
            Some((stat.state, String::from_utf8_lossy(stat.comm).into_owned()))
        });
        let Ok(Some((state, name))) = found else { return };
        self.thread.name = name;
        if self.thread.state.len() <= slot {
            self.thread.state.resize(slot + 1, None);
        }
        self.thread.state[slot] = Some(state);
        if !matches!(state, 'S' | 'D') {
            return;
        }
        let wchan = self.wchan.read(cx, |text| std::str::from_utf8(text).ok().map(str::to_owned));
        // `0`: not for us to see, or it woke meanwhile.
        if let Ok(Some(wchan)) = wchan
            && !matches!(wchan.trim(), "" | "0")
        {
            *self.waits.entry(wchan).or_default() += 1;
        }
    }

    fn finish(self, switches: Option<(u64, f64)>) -> Thread {
        let mut thread = self.thread;
        thread.waits = self.waits.into_iter().collect();
        thread.waits.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        thread.voluntary_switches =
            self.switches.zip(switches).and_then(|((before, then_s), (after, now_s))| {
                let seconds = now_s - then_s;
                (seconds > 0.0).then(|| (after.saturating_sub(before) as f64 / seconds) as f32)
            });
        thread
    }
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value);
    }
}

/// Nanoseconds on a CPU and waiting for one; or ticks on one.
fn counters(text: &[u8], by_ticks: bool) -> Option<(Option<u64>, Option<u64>)> {
    if by_ticks {
        return Some((Some(parse::stat(text).ok()?.cpu_ticks), None));
    }
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(str::parse);
    Some((Some(numbers.next()?.ok()?), Some(numbers.next()?.ok()?)))
}

fn switches(cx: &Context, pid: u32, tid: u32) -> Option<(u64, f64)> {
    let text = cx.machine.read(&format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let [voluntary] = lookup(&text, ["voluntary_ctxt_switches:"]);
    Some((voluntary.value()?, cx.clock.now_s()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_and_what_stands_in_for_it() {
        assert_eq!(counters(b"120 30 4\n", false), Some((Some(120), Some(30))));
        assert_eq!(counters(b"x 30 4\n", false), None);
        let stat = b"7 (a) b) R 1 7 7 0 -1 0 0 0 0 0 12 3 0 0 20 0 1 0 100 0 0";
        assert_eq!(counters(stat, true), Some((Some(15), None)));
    }
}
