//! The rows of `scope`: families of series that share scope, identity and source.

mod gpu;

use rankscope_core::cgroup::Version;
use rankscope_core::gap::{Gap, Reason};
use rankscope_core::rate::{cpu_limit, memory_limit, working_set};
use rankscope_core::reading::{Origin, Readings};
use rankscope_core::sample::{Raw, Sample};
use rankscope_core::series::{self, Scope, Series};
use serde_json::{Value, json};

use crate::printer::{bytes, cgroup_path, number};
use crate::sources::Sources;
use crate::sources::cgroup::Place;

pub struct Family {
    name: String,
    scope: Scope,
    /// The present value, or why there is none.
    now: Result<String, String>,
    identity: Option<String>,
    source: Option<String>,
    limit: Option<Limit>,
    /// Another rank on this node reads the very same thing.
    same: bool,
    note: Option<String>,
}

struct Limit {
    /// Bytes or cores.
    value: f64,
    unit: &'static str,
    level: Option<String>,
    note: Option<String>,
}

pub fn all(sources: &Sources, sample: &Sample, readings: &Readings) -> Vec<Family> {
    let cgroups = sources.cgroups();
    let mut rows = vec![
        memory(sample).hiding(cgroups.memory.as_ref().ok().filter(|m| m.version == Version::V2)),
        cpu(sample, readings).hiding(cgroups.cpu.as_ref().ok()),
    ];
    rows.extend(container_rest(readings));
    rows.push(network(sources, readings));
    rows.extend(where_there(
        &sample.rdma,
        ("node_rdma", &series::NODE_RDMA_RECEIVE_RATE, "received"),
        readings,
    ));
    rows.extend(file_systems(sample, sources.network_scope().0 == Scope::Pod));
    rows.extend(gpu::rows(&sample.gpus));
    rows.push(processes(readings));
    rows.extend(node(sample, readings));
    rows.extend(where_there(
        &sample.disks,
        ("node_disk", &series::NODE_DISK_READ, "read since boot"),
        readings,
    ));
    rows
}

impl Family {
    fn new(name: impl Into<String>, scope: Scope) -> Family {
        let same = scope == Scope::Node;
        Family {
            name: name.into(),
            scope,
            now: Err(String::new()),
            identity: None,
            source: None,
            limit: None,
            same,
            note: None,
        }
    }

    fn read_from(mut self, origin: &Origin) -> Family {
        self.identity = origin.identity.as_deref().map(str::to_owned);
        self.source = Some(origin.source.to_string());
        self.note = origin.note.as_deref().map(str::to_owned);
        self
    }

    fn now(mut self, now: Result<String, Gap>) -> Family {
        self.now = now.map_err(|gap| gap.to_string());
        self
    }

    /// Says so where levels above are hidden. (v1 shows the smallest memory limit even so.)
    fn hiding(self, place: Option<&Place>) -> Family {
        let hidden = place.filter(|p| p.container.is_ok()).and_then(Place::hidden_levels);
        let note = [self.note, hidden].into_iter().flatten().collect::<Vec<_>>().join("; ");
        Family { note: (!note.is_empty()).then_some(note), ..self }
    }

    /// By one series of the present readings; the word says what it is.
    fn of(name: &str, scope: Scope, readings: &Readings, (series, word): (&'static Series, &str)) -> Family {
        let family = Family::new(name, scope);
        let found = readings.present.iter().find(|r| std::ptr::eq(r.series, series));
        match found {
            Some(r) => {
                let value = if series.unit == "MB" {
                    bytes(r.value * 1e6)
                } else {
                    format!("{} {}", number(r.value), series.unit)
                };
                family.now(Ok(format!("{value} {word}").trim_end().to_owned())).read_from(&r.origin)
            }
            None => {
                let gap =
                    readings.missing.iter().find(|m| std::ptr::eq(m.series, series)).map(|m| m.gap.clone());
                family.now(Err(gap.unwrap_or_else(|| Gap::absent("not read"))))
            }
        }
    }

    pub fn json(&self) -> Value {
        let limit = self.limit.as_ref();
        let notes = [
            self.note.as_deref(),
            limit.and_then(|l| l.note.as_deref()),
            self.now.as_ref().err().map(String::as_str),
        ];
        let note: Vec<&str> = notes.into_iter().flatten().collect();
        json!({
            "family": self.name,
            "scope": self.scope.as_str(),
            "identity": self.identity,
            "source": self.source,
            "limit": limit.map(|l| l.value),
            "limit_unit": limit.map(|l| l.unit),
            "level": limit.and_then(|l| l.level.as_deref()),
            "same_for_ranks_on_this_node": self.same,
            "now": self.now.as_ref().ok(),
            "note": (!note.is_empty()).then(|| note.join("; ")),
        })
    }

    /// A person needs no row for what was not asked for, nor for a container where there is none.
    pub fn is_void(&self, container: bool) -> bool {
        let of_no_container = !container && self.scope == Scope::Container && self.limit.is_none();
        self.now.as_ref().is_err_and(|why| why.starts_with("off:") || of_no_container)
    }

    pub fn row(&self) -> Vec<String> {
        let what = self
            .name
            .strip_prefix(self.scope.as_str())
            .map_or(self.name.as_str(), |w| w.trim_start_matches('_'));
        let what = match self.scope {
            Scope::Rootfs => "disk under /",
            Scope::Process => "this job's processes",
            Scope::Mount if what == "shm" => "/dev/shm",
            _ => what,
        };
        let limit = self.limit.as_ref().map(|l| {
            let value =
                if l.unit == "bytes" { bytes(l.value) } else { format!("{} {}", number(l.value), l.unit) };
            match &l.level {
                Some(level) => format!("{value} at {}", cgroup_path(level)),
                None => value,
            }
        });
        vec![
            self.scope.as_str().to_owned(),
            what.replace('_', " "),
            self.now.clone().unwrap_or_else(|_| "–".to_owned()),
            limit.unwrap_or_else(|| "–".to_owned()),
            if self.now.is_err() && self.limit.is_none() {
                "–"
            } else if self.same {
                "yes"
            } else {
                "no"
            }
            .to_owned(),
            self.source.clone().unwrap_or_else(|| "–".to_owned()),
        ]
    }

    /// What the row has no room for.
    pub fn footnote(&self) -> Option<String> {
        let name = self.name.replace('_', " ");
        // That a single reading gives no rates needs no word.
        let now = self.now.as_ref().err().filter(|why| !why.starts_with("first sample")).cloned();
        let said = [now, self.limit.as_ref().and_then(|l| l.note.clone()), self.note.clone()];
        let said: Vec<String> = said.into_iter().flatten().collect();
        (!said.is_empty()).then(|| format!("{name}: {}", said.join("; ")))
    }
}

fn memory(sample: &Sample) -> Family {
    let family = Family::new("container_memory", Scope::Container);
    let memory = match &sample.memory {
        Ok(memory) => memory,
        Err(gap) => return family.now(Err(gap.clone())),
    };
    let used = working_set(&memory.usage.value, &memory.inactive_file.value);
    let family =
        family.now(used.map(|b| format!("{} working set", bytes(b as f64)))).read_from(&memory.usage.origin);
    let limit =
        memory_limit(memory, sample.node.memory_total.value.as_ref().ok().copied()).ok().map(|limit| Limit {
            value: limit.bytes as f64,
            unit: "bytes",
            level: limit
                .level
                .and_then(|at| memory.levels[at].limit.origin.level.as_deref().map(str::to_owned)),
            note: limit.note,
        });
    Family { limit, ..family }
}

fn cpu(sample: &Sample, readings: &Readings) -> Family {
    let family =
        Family::of("container_cpu", Scope::Container, readings, (&series::CONTAINER_CPU_USAGE, "used"));
    let limit = sample.cpu.as_ref().ok().and_then(|cpu| cpu_limit(cpu).ok()).map(|limit| Limit {
        value: limit.cores,
        unit: "cores",
        level: limit.level.and(limit.origin.level.as_deref()).map(str::to_owned),
        note: limit.level.is_none().then(|| format!("no quota; {}", limit.origin.source)),
    });
    Family { limit, ..family }
}

fn container_rest(readings: &Readings) -> [Family; 3] {
    [
        Family::of("container_io", Scope::Container, readings, (&series::CONTAINER_IO_READ, "read")),
        Family::of("container_pids", Scope::Container, readings, (&series::CONTAINER_PIDS, "")),
        Family::of(
            "container_pressure",
            Scope::Container,
            readings,
            (&series::CONTAINER_MEMORY_PRESSURE_FULL, "stalled for memory"),
        ),
    ]
}

fn network(sources: &Sources, readings: &Readings) -> Family {
    let (scope, why) = sources.network_scope();
    let (name, series) = match scope {
        Scope::Node => ("node_network", &series::NODE_NETWORK_RECEIVE),
        _ => ("pod_network", &series::POD_NETWORK_RECEIVE),
    };
    let family = Family::of(name, scope, readings, (series, "received"));
    Family { note: Some(why.to_owned()), ..family }
}

/// A machine without such a device needs no row that says so.
fn where_there<T>(
    devices: &Raw<T>,
    (family, series, verb): (&str, &'static Series, &str),
    readings: &Readings,
) -> Option<Family> {
    let there = devices.value.as_ref().map_or_else(|gap| gap.reason != Reason::Absent, |_| true);
    there.then(|| Family::of(family, Scope::Node, readings, (series, verb)))
}

/// `isolated`: the job has namespaces of its own, as a container runtime makes them.
fn file_systems(sample: &Sample, isolated: bool) -> Vec<Family> {
    let rows = sample.file_systems.iter().map(|fs| {
        let (name, scope) = match &fs.label {
            None => ("rootfs".to_owned(), Scope::Rootfs),
            Some(label) => (format!("mount_{label}"), Scope::Mount),
        };
        let space = fs.space.value.clone();
        let now = space
            .map(|s| format!("{} used, {} free", bytes(s.used() as f64), bytes(s.free_to_users() as f64)));
        // /dev/shm is the container's own; a disk or a network file system is shared.
        let same = fs.label.as_deref() != Some("shm") || !isolated;
        Family { same, ..Family::new(name, scope).now(now).read_from(&fs.space.origin) }
    });
    rows.collect()
}

fn processes(readings: &Readings) -> Family {
    Family::of("process", Scope::Process, readings, (&series::PROCESS_RSS, "resident"))
}

fn node(sample: &Sample, readings: &Readings) -> [Family; 4] {
    let total = sample.node.memory_total.value.as_ref().ok().copied();
    let memory = Family::of("node_memory", Scope::Node, readings, (&series::NODE_MEMORY_USAGE, "used"));
    let limit = total.map(|total| Limit { value: total as f64, unit: "bytes", level: None, note: None });
    [
        Family { limit, ..memory },
        Family::of("node_cpu", Scope::Node, readings, (&series::NODE_CPU_UTILIZATION, "busy")),
        Family::of("node_load", Scope::Node, readings, (&series::NODE_LOAD_1M, "")),
        Family::of("node_pressure", Scope::Node, readings, (&series::NODE_PRESSURE_CPU, "waited for a CPU")),
    ]
}
