//! Which series stand in which chart.

use std::collections::BTreeSet;

use super::track::Track;
use crate::postmortem::{LIMIT, USED};
use crate::series;

pub const FILE: &str = "container_memory_file_megabytes";
pub const SHMEM: &str = "container_memory_shmem_megabytes";
/// Made of the two above.
pub const CACHE: &str = "container_memory_page_cache_megabytes";
pub const STEP: &str = "training_step";
pub const EPOCH: &str = "training_epoch";
pub const CPU: &str = "container_cpu_usage_cores";

/// Counters that are drawn as rates, and the names of these.
pub const RATES: [(&str, &str); 2] = [
    ("container_io_read_megabytes", "container_io_read_megabytes_per_second"),
    ("container_io_write_megabytes", "container_io_write_megabytes_per_second"),
];

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// On top of those before it.
    Stack,
    /// With a band from its minimum to its maximum.
    Line,
    /// As what must not be passed.
    Limit,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Stack => "stack",
            Role::Line => "line",
            Role::Limit => "limit",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// Also its title in `words`: `chart_<id>`.
    pub id: &'static str,
    pub unit: &'static str,
    /// Of the node: drawn apart.
    pub node: bool,
    pub lines: Vec<ChartLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartLine {
    pub series: String,
    pub role: Role,
    /// Its name in `words`: `line_<word>`.
    pub word: &'static str,
    /// Of a GPU or a mount.
    pub label: String,
}

struct Def {
    id: &'static str,
    unit: &'static str,
    lines: &'static [(&'static str, Role, &'static str)],
}

const fn def(
    id: &'static str,
    unit: &'static str,
    lines: &'static [(&'static str, Role, &'static str)],
) -> Def {
    Def { id, unit, lines }
}

use Role::{Limit, Line, Stack};

static DEFS: &[Def] = &[
    def(
        "memory",
        "MB",
        &[
            ("container_memory_anon_megabytes", Stack, "anon"),
            (SHMEM, Stack, "shmem"),
            (CACHE, Stack, "cache"),
            (USED[0], Line, "held"),
            (USED[1], Line, "held_own"),
            (LIMIT, Limit, "limit"),
        ],
    ),
    def(
        "cpu",
        "cores",
        &[
            (CPU, Line, "container"),
            ("process_cpu_cores", Line, "processes"),
            ("container_cpu_limit_cores", Limit, "limit"),
        ],
    ),
    def(
        "cpu_waits",
        "%",
        &[
            ("container_cpu_throttled_periods_percentage", Line, "throttled"),
            ("container_cpu_pressure_some_percentage", Line, "waited"),
        ],
    ),
    def("gpu_utilization", "%", &[("gpu_<i>_utilization_percentage", Line, "gpu")]),
    def(
        "gpu_power",
        "W",
        &[
            ("gpu_<i>_power_usage_watts", Line, "gpu"),
            ("gpu_<i>_board_power_usage_watts", Line, "board"),
            ("gpu_<i>_power_limit_watts", Limit, "limit"),
        ],
    ),
    def("gpu_memory", "%", &[("gpu_<i>_memory_usage_percentage", Line, "gpu")]),
    def(
        "process_memory",
        "MB",
        &[("process_rss_megabytes", Line, "rss"), ("process_pss_megabytes", Line, "pss")],
    ),
    def(
        "network",
        "MB/s",
        &[
            ("pod_network_receive_megabytes_per_second", Line, "receive"),
            ("pod_network_transmit_megabytes_per_second", Line, "transmit"),
        ],
    ),
    def(
        "disk",
        "MB/s",
        &[
            ("process_read_megabytes_per_second", Line, "read_calls"),
            ("process_write_megabytes_per_second", Line, "write_calls"),
            (RATES[0].1, Line, "disk_read"),
            (RATES[1].1, Line, "disk_write"),
        ],
    ),
    def(
        "file_systems",
        "%",
        &[("rootfs_usage_percentage", Line, "rootfs"), ("mount_<label>_usage_percentage", Line, "mount")],
    ),
    def(
        "stalls",
        "%",
        &[
            ("container_memory_pressure_full_percentage", Line, "for_memory"),
            ("container_io_pressure_full_percentage", Line, "for_io"),
        ],
    ),
    def(
        "processes",
        "count",
        &[
            ("process_count", Line, "count"),
            ("process_threads", Line, "threads"),
            ("container_pids", Line, "tasks"),
        ],
    ),
    def("node_memory", "MB", &[("node_memory_usage_megabytes", Line, "used")]),
    def(
        "node_cpu",
        "%",
        &[("node_cpu_utilization_percentage", Line, "busy"), ("node_cpu_iowait_percentage", Line, "iowait")],
    ),
    def(
        "node_pressure",
        "%",
        &[
            ("node_pressure_cpu_some_percentage", Line, "for_cpu"),
            ("node_pressure_memory_some_percentage", Line, "for_memory"),
            ("node_pressure_io_some_percentage", Line, "for_io"),
        ],
    ),
    def(
        "node_network",
        "MB/s",
        &[
            ("node_network_receive_megabytes_per_second", Line, "receive"),
            ("node_network_transmit_megabytes_per_second", Line, "transmit"),
            ("node_rdma_receive_megabytes_per_second", Line, "rdma_receive"),
            ("node_rdma_transmit_megabytes_per_second", Line, "rdma_transmit"),
        ],
    ),
    def(
        "node_disk",
        "MB/s",
        &[
            ("node_disk_read_megabytes_per_second", Line, "disk_read"),
            ("node_disk_write_megabytes_per_second", Line, "disk_write"),
        ],
    ),
];

/// What is kept of each rank where there are too many for all.
const KEY: [&str; 6] = [
    USED[0],
    LIMIT,
    CPU,
    "container_cpu_limit_cores",
    "gpu_<i>_utilization_percentage",
    "gpu_<i>_power_usage_watts",
];

/// Whether a series is needed for any chart. `few`: only the most important.
pub fn is_wanted(name: &str, few: bool) -> bool {
    let Some(row) = series::by_name(name) else { return false };
    let in_chart = || DEFS.iter().flat_map(|d| d.lines).any(|(series, _, _)| *series == row.name);
    let counted = || RATES.iter().any(|(counter, _)| *counter == row.name);
    match few {
        true => KEY.contains(&row.name) || row.name == STEP,
        false => in_chart() || counted() || [FILE, STEP, EPOCH].contains(&row.name),
    }
}

/// The charts for which there is something to draw.
pub fn charts(tracks: &[Track]) -> Vec<Chart> {
    let names: BTreeSet<&str> =
        tracks.iter().flat_map(|t| t.lines.iter().map(|line| line.series.as_str())).collect();
    DEFS.iter().filter_map(|def| chart(def, &names)).collect()
}

fn chart(def: &Def, names: &BTreeSet<&str>) -> Option<Chart> {
    let mut lines: Vec<ChartLine> = Vec::new();
    for (pattern, role, word) in def.lines {
        // The own level where no other's is known.
        if *pattern == USED[1] && names.contains(USED[0]) {
            continue;
        }
        for name in names.iter().filter(|name| fits(pattern, name)) {
            let label = label(pattern, name).replace('_', " ");
            lines.push(ChartLine { series: (*name).to_owned(), role: *role, word, label });
        }
    }
    let drawn = lines.iter().any(|line| line.role != Limit);
    let node = def.id.starts_with("node_");
    drawn.then_some(Chart { id: def.id, unit: def.unit, node, lines })
}

fn fits(pattern: &str, name: &str) -> bool {
    pattern == name || (pattern.contains('<') && series::by_name(name).is_some_and(|s| s.name == pattern))
}

fn label<'a>(pattern: &str, name: &'a str) -> &'a str {
    let Some((before, rest)) = pattern.split_once('<') else { return "" };
    let after = rest.split_once('>').map_or("", |(_, after)| after);
    name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::track;
    use crate::series::{Kind, Scope};

    #[test]
    fn every_line_is_a_series_or_made_of_one() {
        let made: Vec<&str> = RATES.iter().map(|(_, rate)| *rate).chain([CACHE]).collect();
        for (name, _, _) in DEFS.iter().flat_map(|d| d.lines) {
            let known = series::ALL.iter().any(|s| s.name == *name);
            assert!(known != made.contains(name), "{name}");
        }
        assert!(is_wanted("gpu_3_power_usage_watts", true) && is_wanted("mount_shm_usage_percentage", false));
        assert!(!is_wanted("node_load_1m", false) && !is_wanted("process_count", true));
    }

    #[test]
    fn charts_are_of_what_is_there() {
        let line = |series: &str| track::Line {
            series: series.to_owned(),
            rank: None,
            kind: Kind::Gauge,
            scope: Scope::Gpu,
            identity: None,
            values: Vec::new(),
        };
        let names =
            ["gpu_0_power_usage_watts", "gpu_1_mig_2_board_power_usage_watts", USED[0], USED[1], LIMIT];
        let tracks = [Track { lines: names.into_iter().map(line).collect(), ..Track::default() }];
        let charts = charts(&tracks);
        let ids: Vec<&str> = charts.iter().map(|c| c.id).collect();
        assert_eq!(ids, ["memory", "gpu_power"]);
        let series: Vec<&str> = charts[0].lines.iter().map(|l| l.series.as_str()).collect();
        assert_eq!(series, [USED[0], LIMIT]);
        let labels: Vec<&str> = charts[1].lines.iter().map(|l| l.label.as_str()).collect();
        assert_eq!(labels, ["0", "1 mig 2"]);
    }
}
