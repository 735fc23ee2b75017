//! `rankscope doctor`: what works here and why not, with the remedy.

use std::path::PathBuf;
use std::time::Duration;

use rankscope_core::gap::{Gap, Reason};
use rankscope_core::reading::Readings;
use rankscope_core::sample::Sample;
use rankscope_core::series::{self, Series};
use serde_json::{Value, json};

use super::exit;
use super::measure::{Measurement, Request};
use crate::printer;
use crate::sources::{Options, Sources};
use crate::store;

pub struct Config {
    pub pid: Option<u32>,
    pub store: Option<PathBuf>,
    pub json: bool,
}

/// One thing that was tried.
struct Check {
    what: &'static str,
    works: bool,
    detail: String,
    remedy: Option<&'static str>,
}

pub fn doctor(config: &Config) -> Result<u8, String> {
    // Who started us runs as the user in question, and is no recorder; `kubectl exec` starts from outside (0).
    let parent = Some(std::os::unix::process::parent_id()).filter(|pid| *pid > 0);
    let request = Request {
        pid: config.pid.or(parent),
        roots: Vec::new(),
        options: Options::default(),
        interval: Duration::from_secs(1),
    };
    let mut measurement = Measurement::start(&request)?;
    measurement.second_reading();
    let readings = &measurement.readings;
    let mut checks: Vec<Check> =
        SERIES.iter().map(|(what, series, remedy)| by_series(readings, what, series, remedy)).collect();
    checks.push(network(&measurement.sources));
    checks.push(node_identity(&measurement.sources));
    checks.extend(gpus(measurement.sample()));
    checks.extend(oom_group(&measurement.sources));
    checks.push(record(config));
    let failed = checks.iter().any(|c| !c.works && c.what == RECORD);
    match config.json {
        true => printer::data(
            &json!({ "checks": checks.iter().map(Check::json).collect::<Vec<_>>() }).to_string(),
        ),
        false => printer::text(&checks.iter().map(Check::text).collect::<Vec<_>>().join("\n")),
    }
    Ok(if failed { exit::FINDING } else { exit::DONE })
}

const RECORD: &str = "record on disk";

type Row = (&'static str, &'static Series, &'static str);

/// What stands for a capability, and what would help where it is missing.
static SERIES: [Row; 12] = [
    (
        "node CPU",
        &series::NODE_CPU_UTILIZATION,
        "mount /proc; under gVisor, Kata or lxcfs the node's values can't be had",
    ),
    ("node pressure", &series::NODE_PRESSURE_CPU, "start the kernel with psi=1 (Linux 4.20 and later)"),
    (
        "container memory",
        &series::CONTAINER_MEMORY_WORKING_SET,
        "mount the cgroup file system read-only at /sys/fs/cgroup; on a bare host there is no container to measure",
    ),
    (
        "memory limit",
        &series::CONTAINER_MEMORY_LIMIT,
        "set a memory limit; one above a private cgroup namespace is seen only from the host",
    ),
    ("OOM kill counter", &series::CONTAINER_MEMORY_OOM_KILLS, "Linux 4.13 and later (v1), 4.19 (v2)"),
    (
        "kernel's memory peak",
        &series::CONTAINER_MEMORY_PEAK,
        "Linux 5.19 and later on cgroup v2; until then the peak is sampled",
    ),
    (
        "container CPU",
        &series::CONTAINER_CPU_USAGE,
        "mount the cgroup file system; on a bare host there is no container to measure",
    ),
    ("CPU throttling", &series::CONTAINER_CPU_THROTTLED_SECONDS, "enable the cpu controller for the cgroup"),
    ("container I/O", &series::CONTAINER_IO_READ, "enable the io (v1: blkio) controller for the cgroup"),
    ("container pressure", &series::CONTAINER_MEMORY_PRESSURE_FULL, "cgroup v2 with psi=1"),
    (
        "file systems",
        &series::ROOTFS_USAGE,
        "the helper process must be able to start, and the mount to answer",
    ),
    ("process I/O", &series::PROCESS_READ_RATE, "run as the same user as the job, or under `rankscope run`"),
];

fn by_series(
    readings: &Readings,
    what: &'static str,
    series: &'static Series,
    remedy: &'static str,
) -> Check {
    let found = readings.present.iter().find(|r| std::ptr::eq(r.series, series));
    match found {
        Some(r) => {
            let note = r.origin.note.as_deref().map(|n| format!(" ({n})")).unwrap_or_default();
            Check { what, works: true, detail: format!("{}{note}", r.origin.source), remedy: None }
        }
        None => {
            let gap = readings.missing.iter().find(|m| std::ptr::eq(m.series, series)).map(|m| m.gap.clone());
            let gap = gap.unwrap_or_else(|| Gap::new(Reason::Absent, "not read"));
            Check { what, works: false, detail: gap.to_string(), remedy: Some(remedy) }
        }
    }
}

fn network(sources: &Sources) -> Check {
    let (scope, why) = sources.network_scope();
    Check { what: "network", works: true, detail: format!("{}'s: {why}", scope.as_str()), remedy: None }
}

fn node_identity(sources: &Sources) -> Check {
    let what = "node identity";
    match &sources.host.node {
        Some(id) => Check {
            what,
            works: true,
            detail: format!("{id}, called {}", sources.host.node_name),
            remedy: None,
        },
        None => Check {
            what,
            works: false,
            detail: "no boot id of the node is visible".to_owned(),
            remedy: Some("hand in the node's name as NODE_NAME (Kubernetes: downward API, spec.nodeName)"),
        },
    }
}

/// Where there is a sign of one.
fn gpus(sample: Option<&Sample>) -> Option<Check> {
    let gpus = &sample?.gpus;
    let what = "GPUs";
    match &gpus.list {
        Ok(list) => {
            let names: Vec<String> = list.iter().map(|g| format!("{} {}", g.label, g.name)).collect();
            Some(Check { what, works: true, detail: names.join(", "), remedy: None })
        }
        Err(_) if gpus.expected.is_empty() => None,
        Err(gap) => Some(Check {
            what,
            works: false,
            detail: gap.to_string(),
            remedy: Some(
                "the container runtime must give libnvidia-ml.so.1 of the node's driver (capability `utility`)",
            ),
        }),
    }
}

/// With memory.oom.group an OOM kill takes the whole container, a supervisor in it included.
fn oom_group(sources: &Sources) -> Option<Check> {
    let level = sources.oom_group()?;
    Some(Check {
        what: "supervisor outlives an OOM kill",
        works: false,
        detail: format!(
            "memory.oom.group is 1 at {level}: an OOM kill takes every process there, a supervisor included"
        ),
        remedy: Some("put the store on a volume, so that the record survives"),
    })
}

fn record(config: &Config) -> Check {
    let target = store::Target {
        asked: config.store.clone(),
        cwd: std::env::current_dir().ok(),
        tmpdir: std::env::var_os("TMPDIR").map(PathBuf::from),
        folder: String::new(),
        rank: 0,
    };
    match store::would_go_to(&target) {
        Ok(base) => Check { what: RECORD, works: true, detail: base.display().to_string(), remedy: None },
        Err(why) => Check {
            what: RECORD,
            works: false,
            detail: why,
            remedy: Some("give a writable local directory with --store"),
        },
    }
}

impl Check {
    fn json(&self) -> Value {
        json!({ "what": self.what, "works": self.works, "detail": self.detail, "remedy": self.remedy })
    }

    fn text(&self) -> String {
        let mark = if self.works { "ok " } else { "no " };
        let remedy = self.remedy.map(|r| format!("\n      would help: {r}")).unwrap_or_default();
        format!("{mark} {}: {}{remedy}", self.what, self.detail)
    }
}
