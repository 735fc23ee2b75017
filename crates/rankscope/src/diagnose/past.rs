//! Named series of the past → observations: what a record and a run have in common.

use rankscope_core::diagnose::observations::{Gpu, Mark, Observations, Process, Rank};
use rankscope_core::series;

use super::gaps::missing;
use super::slots::{fill_up, put};
use super::surroundings;

/// Longer courses are thinned: slots become longer.
const MOST_SLOTS: usize = 3000;

/// One series of one rank, or of what it shares with others.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// Index of the rank; `None`: of all.
    pub rank: Option<usize>,
    /// Where one GPU is told from another of the same index.
    pub node: Option<String>,
    pub series: String,
    /// Milliseconds since the epoch, and the value; each is of the time before it.
    pub points: Vec<(i64, f64)>,
}

/// The time that is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from_ms: i64,
    pub until_ms: i64,
    /// Between two points.
    pub step_ms: f64,
}

impl Span {
    fn length_ms(&self) -> f64 {
        (self.until_ms - self.from_ms).max(1) as f64
    }

    fn slot_ms(&self) -> f64 {
        self.step_ms.max(self.length_ms() / MOST_SLOTS as f64).max(1.0)
    }

    fn slots(&self) -> usize {
        ((self.length_ms() / self.slot_ms()).ceil() as usize).max(1)
    }

    /// Of a point, which is of the time before it.
    fn slot(&self, unix_ms: i64) -> usize {
        let at = ((unix_ms - self.from_ms) as f64 - self.step_ms / 2.0).max(0.0);
        ((at / self.slot_ms()) as usize).min(self.slots() - 1)
    }
}

/// Points of one series as they come, oldest first: those of one slot are one, their mean.
#[derive(Default)]
pub struct Course {
    points: Vec<(i64, f64)>,
    of_last: f64,
}

impl Course {
    pub fn add(&mut self, span: &Span, unix_ms: i64, value: f64) {
        match self.points.last_mut().filter(|(last, _)| span.slot(*last) == span.slot(unix_ms)) {
            Some((_, mean)) => {
                self.of_last += 1.0;
                *mean += (value - *mean) / self.of_last;
            }
            None => {
                self.points.push((unix_ms, value));
                self.of_last = 1.0;
            }
        }
    }

    pub fn points(self) -> Vec<(i64, f64)> {
        self.points
    }
}

pub fn observations(span: Span, ranks: &[Option<u32>], all: &[Past]) -> Observations {
    let (slot_ms, slots) = (span.slot_ms(), span.slots());
    let mut seen = Observations {
        started_unix_ms: span.from_ms,
        slot_seconds: slot_ms / 1000.0,
        slots,
        from_record: true,
        ranks: ranks
            .iter()
            .map(|rank| Rank { rank: *rank, pid: rank.unwrap_or(0), gpus: Vec::new() })
            .collect(),
        ..Observations::default()
    };
    let process =
        |(at, rank): (usize, &Rank)| Process { pid: rank.pid, rank: Some(at), ..Process::default() };
    seen.processes = seen.ranks.iter().enumerate().map(process).collect();
    for past in all {
        let gpu = gpu_of(&past.series);
        for (slot, value) in means(&past.points, span) {
            place(&mut seen, (past, gpu), slot, value);
        }
    }
    owners(&mut seen, all);
    seen.container.cpu_quota = all.iter().any(|p| p.series == series::CONTAINER_CPU_THROTTLED_PERIODS.name);
    seen.marks.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    seen.missing = vec![
        missing("threads", "a record has no threads", Some("run `rankscope diagnose` while the job runs")),
        missing("stacks", "a record has no stacks", Some("run `rankscope diagnose` while the job runs")),
        missing("caches", "a record does not say when caches were written", None),
    ];
    if seen.gpus.is_empty() {
        seen.missing.push(missing("gpu", "nothing about a GPU was recorded", None));
    }
    fill_up(&mut seen);
    seen
}

/// The mean of the points of each slot.
fn means(points: &[(i64, f64)], span: Span) -> Vec<(usize, f64)> {
    let mut course = Course::default();
    for (unix_ms, value) in points.iter().filter(|(at, _)| *at > span.from_ms && *at <= span.until_ms) {
        course.add(&span, *unix_ms, *value);
    }
    course.points.into_iter().map(|(unix_ms, mean)| (span.slot(unix_ms), mean)).collect()
}

/// `gpu`: what `gpu_of` says of the series.
fn place(seen: &mut Observations, (past, gpu): (&Past, Option<(&str, &str)>), slot: usize, value: f64) {
    let is = |named: &series::Series| named.name == past.series;
    if let Some((label, name)) = gpu {
        let label = past.node.as_ref().map_or_else(|| label.to_owned(), |node| format!("{node}/{label}"));
        return of_gpu(seen, label, name, (slot, value));
    }
    let rank = past.rank.unwrap_or(0);
    if is(&series::TRAINING_STEP) || is(&series::TRAINING_EPOCH) {
        let at_s = (slot + 1) as f64 * seen.slot_seconds;
        let (step, epoch) =
            if is(&series::TRAINING_STEP) { (Some(value), None) } else { (None, Some(value)) };
        let whole = |v: Option<f64>| v.map(|v| v as i64);
        seen.marks.push(Mark { at_s, rank: past.rank, step: whole(step), epoch: whole(epoch), phase: None });
        return;
    }
    if let Some(process) = seen.processes.get_mut(rank) {
        let course = match () {
            () if is(&series::PROCESS_CPU) => Some(&mut process.cpu),
            () if is(&series::PROCESS_READ_RATE) => Some(&mut process.read),
            () if is(&series::PROCESS_WRITE_RATE) => Some(&mut process.written),
            () => None,
        };
        if let Some(course) = course {
            return put(course, slot, Some(value));
        }
        if is(&series::PROCESS_THREADS) {
            process.threads = Some(value as u32);
            return;
        }
    }
    // Of several ranks in one container every recorder says the same.
    if rank == 0 {
        surroundings::put_value(seen, slot, &past.series, value);
    }
}

/// `0` and `utilization_percentage` of `gpu_0_utilization_percentage`.
pub fn gpu_of(name: &str) -> Option<(&str, &str)> {
    let named = series::by_name(name)?;
    let (before, after) = named.name.split_once("<i>")?;
    let label = name.strip_prefix(before)?.strip_suffix(after)?;
    Some((label, after.trim_start_matches('_')))
}

fn of_gpu(seen: &mut Observations, label: String, name: &str, (slot, value): (usize, f64)) {
    let at = seen.gpus.iter().position(|gpu| gpu.label == label).unwrap_or_else(|| {
        seen.gpus.push(Gpu { label, ..Gpu::default() });
        seen.gpus.len() - 1
    });
    let gpu = &mut seen.gpus[at];
    let constant = Some(value as f32);
    match name {
        "power_limit_watts" => gpu.power_limit = constant,
        "max_sm_clock_megahertz" => gpu.max_sm_clock = constant,
        "utilization_percentage" => put(&mut gpu.utilization, slot, Some(value)),
        "power_usage_watts" | "board_power_usage_watts" => {
            gpu.mig |= name.starts_with("board");
            put(&mut gpu.power, slot, Some(value));
        }
        "memory_usage_megabytes" => put(&mut gpu.memory, slot, Some(value)),
        "memory_controller_percentage" => put(&mut gpu.memory_controller, slot, Some(value)),
        "sm_clock_megahertz" => put(&mut gpu.sm_clock, slot, Some(value)),
        "pcie_receive_megabytes_per_second" => put(&mut gpu.pcie_receive, slot, Some(value)),
        "pcie_transmit_megabytes_per_second" => put(&mut gpu.pcie_transmit, slot, Some(value)),
        _ => {}
    }
}

/// A rank's GPUs are those in whose memory something was its own; where no recorder said so, those that it recorded.
fn owners(seen: &mut Observations, all: &[Past]) {
    for (index, rank) in seen.ranks.iter_mut().enumerate() {
        let of_rank = |p: &&Past| p.rank.is_none_or(|r| r == index);
        let label = |p: &Past| {
            let (label, _) = gpu_of(&p.series)?;
            Some(p.node.as_ref().map_or_else(|| label.to_owned(), |node| format!("{node}/{label}")))
        };
        let own = |p: &&Past| {
            p.series.ends_with("own_memory_usage_megabytes") && p.points.iter().any(|(_, v)| *v > 0.0)
        };
        let mut labels: Vec<String> = all.iter().filter(of_rank).filter(own).filter_map(label).collect();
        if labels.is_empty() {
            labels = all.iter().filter(of_rank).filter_map(label).collect();
        }
        labels.sort();
        labels.dedup();
        rank.gpus = labels;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_become_courses() {
        let past = |rank, series: &str, points: &[(i64, f64)]| Past {
            rank: Some(rank),
            series: series.to_owned(),
            points: points.to_vec(),
            ..Past::default()
        };
        let span = Span { from_ms: 1000, until_ms: 4000, step_ms: 1000.0 };
        let all = [
            past(0, "gpu_0_utilization_percentage", &[(2000, 10.0), (4000, 30.0), (9000, 99.0)]),
            past(0, "gpu_0_own_memory_usage_megabytes", &[(2000, 10.0)]),
            past(0, "gpu_1_utilization_percentage", &[(2000, 10.0)]),
            past(1, "process_cpu_cores", &[(2000, 2.0)]),
            past(1, "container_cpu_usage_cores", &[(2000, 9.0)]),
            past(0, "container_cpu_usage_cores", &[(2000, 3.0)]),
            past(0, "training_step", &[(3000, 7.0)]),
        ];
        let seen = observations(span, &[Some(0), Some(1)], &all);
        assert_eq!((seen.slots, seen.slot_seconds, seen.from_record), (3, 1.0, true));
        assert_eq!(seen.gpus[0].utilization, [Some(10.0), None, Some(30.0)]);
        assert_eq!((&*seen.ranks[0].gpus, seen.processes[1].cpu[0]), (&["0".to_owned()][..], Some(2.0)));
        assert_eq!((seen.container.cpu[0], seen.marks[0].step), (Some(3.0), Some(7)));
        assert!(seen.missing.iter().any(|m| m.what == "stacks"));
    }

    #[test]
    fn a_long_course_is_thinned() {
        let span = Span { from_ms: 0, until_ms: 36_000_000, step_ms: 1000.0 };
        let points = (1..=36_000).map(|n| (n * 1000, 1.0)).collect();
        let all = [Past { series: "node_cpu_utilization_percentage".to_owned(), points, ..Past::default() }];
        let seen = observations(span, &[None], &all);
        assert_eq!((seen.slots, seen.slot_seconds), (3000, 12.0));
        assert!(seen.node.cpu.iter().all(|v| *v == Some(1.0)));
    }
}
