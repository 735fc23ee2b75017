//! Samples → where main threads spent their time, and where the GPU's idle time went: what flame graphs are made of.

use super::observations::{Rank, StackSample, Stacks};

#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub name: String,
    /// Of the GPU's idle time alone.
    pub gpu_idle: bool,
    /// In the order in which they were seen.
    pub entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Indices in `Stacks::frames`, root first.
    pub frames: Vec<u32>,
    pub seconds: f64,
}

impl Profile {
    pub fn seconds(&self) -> f64 {
        self.entries.iter().map(|entry| entry.seconds).sum()
    }
}

/// Of each rank's main thread: the idle time of its GPU (where `idle` knows the idle share at a sample, 0 to 1), and all.
pub fn of_ranks(stacks: &Stacks, ranks: &[Rank], idle: &dyn Fn(&StackSample) -> Option<f64>) -> Vec<Profile> {
    let mut profiles = Vec::new();
    for rank in ranks {
        let samples: Vec<&StackSample> =
            stacks.samples.iter().filter(|sample| sample.pid == rank.pid && sample.main).collect();
        let Some(each) = seconds_each(&samples) else { continue };
        let name = rank.rank.map_or(format!("process {}", rank.pid), |rank| format!("rank {rank}"));
        let profile = |gpu_idle: bool, weight: &dyn Fn(&StackSample) -> Option<f64>| {
            let entry = |sample: &&StackSample| {
                let seconds = each * weight(sample).filter(|share| *share > 0.0)?;
                Some(Entry { frames: believed(stacks, sample)?, seconds })
            };
            let entries: Vec<Entry> = samples.iter().filter_map(entry).collect();
            let what = if gpu_idle { "GPU idle" } else { "all" };
            (!entries.is_empty()).then(|| Profile { name: format!("{name}, {what}"), gpu_idle, entries })
        };
        profiles.extend(profile(true, idle));
        profiles.extend(profile(false, &|_| Some(1.0)));
    }
    profiles
}

/// What one sample stands for.
fn seconds_each(samples: &[&StackSample]) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    let gaps = samples.len() - 1;
    Some((last.at_s - first.at_s) / gaps as f64).filter(|seconds| seconds.is_finite() && *seconds > 0.0)
}

/// Root first, without a leaf that is not to be believed, and with the library's function that it was in.
fn believed(stacks: &Stacks, sample: &StackSample) -> Option<Vec<u32>> {
    let stack = stacks.stacks.get(usize::try_from(sample.stack).ok()?)?;
    let skipped = usize::from(sample.torn_leaf && stack.len() > 1);
    Some(stack.iter().skip(skipped).rev().copied().chain(sample.native).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::diagnose::observations::Frame;

    /// Rank 3 (pid 7): half of two seconds in `load`, half in `step` with a torn leaf; a worker beside it.
    pub(crate) fn stacks() -> Stacks {
        let frame = |function: &str, line: u32| Frame {
            function: function.to_owned(),
            file: "/a/<train> & co.py".to_owned(),
            line,
        };
        let sample = |at_s: f64, pid: u32, stack: u32| StackSample {
            at_s,
            pid,
            tid: pid,
            thread: "MainThread".to_owned(),
            main: true,
            stack,
            torn_leaf: stack == 1,
            ..StackSample::default()
        };
        Stacks {
            frames: vec![frame("<module>", 1), frame("load", 2), frame("step", 3), frame("torn", 0)],
            stacks: vec![vec![1, 0], vec![3, 2, 0]],
            samples: vec![
                sample(0.0, 7, 0),
                sample(0.1, 9, 0),
                sample(0.5, 7, 1),
                sample(1.0, 7, 0),
                sample(1.5, 7, 1),
            ],
            ..Stacks::default()
        }
    }

    pub(crate) fn profiles() -> Vec<Profile> {
        let ranks = [Rank { rank: Some(3), pid: 7, gpus: Vec::new() }];
        of_ranks(&stacks(), &ranks, &|sample| Some(if sample.stack == 0 { 0.8 } else { 0.0 }))
    }

    #[test]
    fn idle_time_and_all_of_it() {
        let profiles = profiles();
        let names: Vec<&str> = profiles.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["rank 3, GPU idle", "rank 3, all"]);
        assert!((profiles[0].seconds() - 0.8).abs() < 1e-9);
        assert!((profiles[1].seconds() - 2.0).abs() < 1e-9);
        assert!(profiles[0].entries.iter().all(|entry| entry.frames == [0, 1]));
        assert_eq!(profiles[1].entries[1].frames, [0, 2]);
    }

    #[test]
    fn a_library_is_below_its_caller() {
        let mut stacks = stacks();
        stacks.samples.iter_mut().for_each(|sample| sample.native = Some(3));
        let ranks = [Rank { rank: Some(3), pid: 7, gpus: Vec::new() }];
        let profiles = of_ranks(&stacks, &ranks, &|_| None);
        assert_eq!(profiles[0].entries[0].frames, [0, 1, 3]);
    }

    #[test]
    fn nothing_is_said_of_a_gpu_that_nobody_saw() {
        let ranks = [Rank { rank: None, pid: 7, gpus: Vec::new() }];
        let profiles = of_ranks(&stacks(), &ranks, &|_| None);
        assert_eq!(profiles.len(), 1);
        assert_eq!(profiles[0].name, "process 7, all");
        assert!(of_ranks(&Stacks::default(), &ranks, &|_| None).is_empty());
    }
}
