//! What is known of one rank over its whole life.

use serde::Serialize;

use crate::ending::Reason;
use crate::postmortem::{LIMIT, USED};
use crate::report::{Line, Material, Track};
use crate::series;

/// Memory in bytes. `None`: not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RankRow {
    pub rank: u32,
    pub node: String,
    pub started_unix_ms: i64,
    pub ended_unix_ms: Option<i64>,
    pub reason: Option<Reason>,
    pub memory_peak_bytes: Option<f64>,
    pub memory_limit_bytes: Option<f64>,
    pub cpu_cores: Option<f64>,
    pub cpu_limit_cores: Option<f64>,
    pub throttled_percentage: Option<f64>,
    /// Mean of its GPUs.
    pub gpu_utilization_percentage: Option<f64>,
    pub gpu_power_watts: Option<f64>,
    /// The last step that is known.
    pub step: Option<f64>,
    pub first_unix_ms: Option<i64>,
    pub last_unix_ms: Option<i64>,
}

const CPU: [&str; 2] = ["container_cpu_usage_cores", "process_cpu_cores"];

pub fn rows(material: &Material) -> Vec<RankRow> {
    let tracks = &material.tracks;
    let mut rows: Vec<RankRow> = material
        .ranks
        .iter()
        .map(|rank| {
            let of = Of { tracks, track: rank.track, rank: rank.id };
            let many = of.is_one_of_many();
            let recorded = material.recorded.iter().find(|one| one.rank == rank.id && !many);
            let megabytes = |value: Option<f64>| value.map(|v| v * 1e6);
            let (memory, cpu): (&[&str], &[&str]) = match many {
                true => (&USED[2..], &CPU[1..]),
                false => (&USED, &CPU),
            };
            let peak = of.first(memory).map(highest);
            RankRow {
                rank: rank.id,
                node: rank.node.clone(),
                started_unix_ms: rank.started_unix_ms,
                ended_unix_ms: rank.ended_unix_ms,
                reason: rank.reason,
                memory_peak_bytes: recorded.and_then(|one| one.peak.used).or(megabytes(peak)),
                memory_limit_bytes: megabytes(of.line(LIMIT).filter(|_| !many).and_then(last)),
                cpu_cores: of.first(cpu).and_then(mean),
                cpu_limit_cores: of.line("container_cpu_limit_cores").filter(|_| !many).and_then(last),
                throttled_percentage: of.line("container_cpu_throttled_periods_percentage").and_then(mean),
                gpu_utilization_percentage: of.gpus("gpu_<i>_utilization_percentage"),
                gpu_power_watts: of.gpus("gpu_<i>_power_usage_watts"),
                step: of.line(crate::report::charts::STEP).and_then(last),
                first_unix_ms: tracks.get(rank.track).and_then(|t| t.times.first().copied()),
                last_unix_ms: tracks.get(rank.track).and_then(|t| t.times.last().copied()),
            }
        })
        .collect();
    rows.sort_by_key(|row| row.rank);
    rows
}

/// Lines that speak for a rank.
struct Of<'a> {
    tracks: &'a [Track],
    track: usize,
    rank: u32,
}

impl<'a> Of<'a> {
    fn lines(&self) -> impl Iterator<Item = &'a Line> {
        let (tracks, rank) = (self.tracks, self.rank);
        let own = tracks.get(self.track);
        let own_lines = own.into_iter().flat_map(|t| &t.lines);
        let elsewhere = own.into_iter().flat_map(|t| &t.elsewhere);
        let others = elsewhere.filter_map(move |(name, at)| tracks.get(*at)?.line(name));
        own_lines.chain(others).filter(move |line| line.rank.is_none_or(|of| of == rank))
    }

    /// Of its own processes, else of what it is in.
    fn line(&self, name: &str) -> Option<&'a Line> {
        let named = || self.lines().filter(|line| line.series == name);
        named().find(|line| line.rank.is_some()).or_else(|| named().next())
    }

    /// A recorder above several ranks: what the container uses is not this rank's.
    fn is_one_of_many(&self) -> bool {
        self.tracks.get(self.track).is_some_and(|track| track.ranks.len() > 1)
    }

    fn first(&self, names: &[&str]) -> Option<&'a Line> {
        names.iter().find_map(|name| self.line(name))
    }

    fn gpus(&self, pattern: &str) -> Option<f64> {
        let of_pattern = |line: &&Line| series::by_name(&line.series).is_some_and(|s| s.name == pattern);
        let means: Vec<f64> = self.lines().filter(of_pattern).filter_map(mean).collect();
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
    }
}

fn mean(line: &Line) -> Option<f64> {
    let (sum, n) =
        line.values.iter().flatten().fold((0.0, 0), |(sum, n), v| (sum + v.mean * v.n as f64, n + v.n));
    (n > 0).then(|| sum / n as f64)
}

fn last(line: &Line) -> Option<f64> {
    line.values.iter().rev().flatten().next().map(|v| v.last)
}

fn highest(line: &Line) -> f64 {
    line.values.iter().flatten().map(|v| v.max).fold(0.0, f64::max)
}
