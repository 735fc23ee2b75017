//! One rank: what its main thread and its workers did while its GPU had nothing to do.

use super::super::observations::{Observations, Process, Rank, Thread};
use super::super::phases::{GpuTime, Grid};
use super::super::series::{Measure, average, weighted};
use super::balance;
use super::doing::{self, Doing, Os, of_slot, sleeps_in};
use super::frames;
use super::handed;
use super::helpers::{self, Helpers};
use super::iterators;
use super::shares::Shares;
use super::stacks::{self, Sampled};
use super::workers::{self, Group};

/// Fewer stacks say little; then the kernel's view is taken.
const FEWEST_STACKS: usize = 10;

pub struct RankFacts<'a> {
    /// `rank 3`; where nobody says which, `the job`, or of several `process 4711`.
    pub name: String,
    pub process: Option<&'a Process>,
    pub main: Option<&'a Thread>,
    /// Indices of its GPUs.
    pub gpus: Vec<usize>,
    /// By slot: how much it counts as lost. All 1 where no GPU can say.
    pub weight: Vec<f64>,
    /// Share of the window in which its GPUs did nothing. `None`: cannot be told, or it has none.
    pub lost: Option<Measure>,
    /// Share of the window in which its GPUs waited in a collective.
    pub collective: Option<f64>,
    /// What the main thread did in the lost time.
    pub doing: Shares,
    /// The main thread, by the kernel, in the lost time.
    pub on_cpu: Option<Measure>,
    pub run_delay: Option<Measure>,
    /// Stacks of the main thread, each with its weight in the lost time and what it did.
    pub sampled: Vec<Sampled<'a>>,
    /// What threads of a library do for the main thread, while that sleeps.
    pub handed: Option<Doing>,
    pub workers: Vec<Group<'a>>,
    pub helpers: Option<Helpers>,
    /// The samples' shares of the lost time have the GPU's work taken off.
    settled: bool,
}

pub fn of_all<'a>(seen: &'a Observations, gpus: &[GpuTime], grid: Grid) -> Vec<RankFacts<'a>> {
    seen.ranks.iter().enumerate().map(|(index, rank)| of(seen, (index, rank), gpus, grid)).collect()
}

fn of<'a>(
    seen: &'a Observations,
    (index, rank): (usize, &'a Rank),
    times: &[GpuTime],
    grid: Grid,
) -> RankFacts<'a> {
    let gpus = gpus_of(seen, index, rank, times);
    let mine: Vec<&GpuTime> = gpus.iter().map(|&g| &times[g]).collect();
    let lost_at = |slot: usize| average(mine.iter().filter_map(|gpu| Some((1.0, gpu.lost[slot]?))));
    let by_slot: Vec<Option<f64>> = (0..grid.slots).map(|slot| lost_at(slot).map(|m| m.value)).collect();
    let by_slot = filled(&by_slot, grid);
    let lost = average(by_slot.iter().flatten().map(|&v| (1.0, v)));
    let weight: Vec<f64> = match lost {
        Some(_) => by_slot.iter().map(|v| v.unwrap_or(0.0)).collect(),
        None => vec![1.0; grid.slots],
    };
    let process = seen.processes.iter().find(|p| p.pid == rank.pid);
    let main =
        process.and_then(|p| p.seen_threads.iter().find(|t| t.tid == p.pid).or(p.seen_threads.first()));
    let mut sampled = stacks::of_main(seen, rank.pid, main, grid);
    iterators::mark(seen, &mut sampled);
    if let Some(main) = main {
        balance::balance(&mut sampled, main, &weight);
    }
    let handed = process.and_then(|p| handed::over(seen, p, &mut sampled));
    let settled = lost.is_some() && balance::settle(&mut sampled, &weight);
    let collective =
        average(mine.iter().filter(|g| g.usage.unknown < 1.0).map(|g| (1.0, g.usage.collective_wait)));
    RankFacts {
        name: match rank.rank {
            Some(rank) => format!("rank {rank}"),
            None if seen.ranks.len() > 1 => format!("process {}", rank.pid),
            None => "the job".to_owned(),
        },
        process,
        main,
        lost,
        collective: collective.map(|m| m.value),
        doing: shares(&sampled, main, &weight),
        on_cpu: main.and_then(|t| weighted(&t.on_cpu, &weight)),
        run_delay: main.and_then(|t| weighted(&t.run_delay, &weight)),
        workers: workers::of(seen, index, rank.pid, &weight, grid),
        helpers: process.and_then(|p| helpers::of(seen, p, &weight, grid)),
        gpus,
        weight,
        sampled,
        handed,
        settled,
    }
}

/// A GPU that is read less often than the threads: its last answer holds for a second.
fn filled(by_slot: &[Option<f64>], grid: Grid) -> Vec<Option<f64>> {
    let most = (1.0 / grid.seconds) as usize;
    let before = |slot: usize| (1..=most.min(slot)).find_map(|back| by_slot[slot - back]);
    by_slot.iter().enumerate().map(|(slot, value)| value.or_else(|| before(slot))).collect()
}

/// As observed; where nobody says, the one rank has all that were used, and of several each has its own in order.
fn gpus_of(seen: &Observations, index: usize, rank: &Rank, times: &[GpuTime]) -> Vec<usize> {
    let named = |label: &String| seen.gpus.iter().position(|gpu| gpu.label == *label);
    let named: Vec<usize> = rank.gpus.iter().filter_map(named).collect();
    if !named.is_empty() {
        return named;
    }
    match seen.ranks.len() {
        1 => {
            let used: Vec<usize> = (0..times.len()).filter(|&g| times[g].usage.idle < 1.0).collect();
            if used.is_empty() { (0..times.len()).collect() } else { used }
        }
        ranks if ranks == seen.gpus.len() => vec![index],
        _ => Vec::new(),
    }
}

fn shares(sampled: &[Sampled], main: Option<&Thread>, weight: &[f64]) -> Shares {
    let mut shares = Shares::default();
    let counted = || sampled.iter().filter(|s| weight[s.slot] > 0.0);
    if counted().count() >= FEWEST_STACKS {
        counted().for_each(|s| shares.add(s.doing, s.counts(weight)));
        shares.samples = counted().count() as u64;
        shares.by_stacks = true;
        return shares;
    }
    let Some(main) = main else { return shares };
    let sleeps = sleeps_in(main);
    for (slot, &w) in weight.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        let parts = of_slot(Os::of(Some(main), slot), sleeps);
        shares.samples += u64::from(!parts.is_empty());
        parts.into_iter().for_each(|(share, doing)| shares.add(doing, share * w));
    }
    shares
}

impl RankFacts<'_> {
    /// Share of the lost time; `None` where the main thread could not be seen at all.
    pub fn share(&self, all: &[Doing]) -> Option<Measure> {
        let known = self.doing.known() && (self.doing.by_stacks || !all.iter().any(needs_stacks));
        known.then(|| Measure { value: self.doing.of(all), samples: self.doing.samples })
    }

    /// Share of the window, by stacks; 0 without.
    pub fn of_wall(&self, kinds: &[Doing]) -> f64 {
        let sum = |which: &dyn Fn(&Sampled) -> bool| -> f64 {
            self.sampled.iter().filter(|s| which(s)).map(|s| s.factor).sum()
        };
        let all = sum(&|_| true);
        if all > 0.0 { sum(&|s| kinds.contains(&s.doing)) / all } else { 0.0 }
    }

    /// Of the lost time: what is certain of `share`, if the GPU worked meanwhile for all but the time that the thread
    /// was `elsewhere`. Within a slot the GPU's work and its rest cannot be told apart, and who waits for it, asleep or
    /// in a loop, does so while it works.
    pub fn beyond_the_gpus_work(&self, share: f64, elsewhere: f64) -> f64 {
        if self.settled {
            return share;
        }
        let lost: f64 = self.weight.iter().sum();
        let used: f64 = self.weight.iter().map(|w| w * (1.0 - w)).sum();
        let used = if lost > 0.0 { used / lost } else { 0.0 };
        if used >= 1.0 {
            return 0.0;
        }
        let beyond = (share - (used - elsewhere).max(0.0)) / (1.0 - used);
        beyond.clamp(0.0, share)
    }

    /// Share of the lost time in which the main thread waits for what nobody of the job owes it: a time, events, input.
    pub fn by_choice(&self) -> f64 {
        let chosen = self.doing.of(&[Doing::Sleep, Doing::Events]);
        // A read of a pipe, or a poll, that no module of the library asked for.
        let polls = self.main.is_some_and(doing::polls);
        let asked = |s: &&Sampled| match s.doing {
            Doing::Data => frames::wait(&s.frames).is_none(),
            Doing::NativeWait => polls,
            _ => false,
        };
        let all: f64 = self.sampled.iter().map(|s| s.counts(&self.weight)).sum();
        let asked: f64 = self.sampled.iter().filter(asked).map(|s| s.counts(&self.weight)).sum();
        if self.doing.by_stacks && all > 0.0 { chosen + asked / all } else { chosen }
    }

    /// The workers that did most in the lost time.
    pub fn active_workers(&self) -> Option<&Group<'_>> {
        self.workers.iter().max_by(|a, b| a.activity().total_cmp(&b.activity()))
    }
}

/// The kernel alone doesn't tell these apart.
fn needs_stacks(doing: &Doing) -> bool {
    use Doing::{Collect, GilWait, Import, Lock, Native, NativeWait, Python, Spawn};
    matches!(doing, Python | Native | GilWait | Collect | Lock | Spawn | Import | NativeWait)
}
