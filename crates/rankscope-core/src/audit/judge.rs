//! From implied totals and known sizes to a verdict for each series.

use super::implied::{self, Implied, quantile};
use super::key::{Key, Name, split};
use super::{Finding, History, Known, Measures, Point, Size, points, words};
use crate::series::{self, Series};

/// Takes what is missing in `known` from rankscope's own series of the same run.
pub fn complete(known: Known, histories: &[History]) -> Known {
    let limit = |series: &'static Series, unit: f64| {
        let found = histories.iter().filter(|h| split(&h.key).is_some_and(|(_, name)| name == series.name));
        let last =
            found.filter_map(|h| h.points.iter().max_by_key(|p| (p.step, p.timestamp_ms)).map(|p| (p, h)));
        // Ranks with limits of their own: the largest is the fairest to compare with.
        let largest = last.max_by(|(a, _), (b, _)| a.value.total_cmp(&b.value));
        largest.map(|(p, h)| Size { value: p.value * unit, from: h.key.clone(), measured: true })
    };
    Known {
        memory_limit: known.memory_limit.or_else(|| limit(&series::CONTAINER_MEMORY_LIMIT, 1e6)),
        cpu_limit: known.cpu_limit.or_else(|| limit(&series::CONTAINER_CPU_LIMIT, 1.0)),
        node_memory: known.node_memory.or_else(|| node_memory(histories)),
        node_cores: known.node_cores,
    }
}

/// What is used and what is available make the total.
fn node_memory(histories: &[History]) -> Option<Size> {
    let named = |series: &'static Series| {
        move |h: &&History| split(&h.key).is_some_and(|(_, name)| name == series.name)
    };
    let used = histories.iter().find(named(&series::NODE_MEMORY_USAGE))?;
    let subject = split(&used.key)?.0;
    let free = histories
        .iter()
        .filter(named(&series::NODE_MEMORY_AVAILABLE))
        .find(|h| split(&h.key).is_some_and(|(prefix, _)| prefix == subject))?;
    let at = used.points.last()?;
    let available = free.points.iter().find(|p| (p.step, p.timestamp_ms) == (at.step, at.timestamp_ms))?;
    let value = (at.value + available.value) * 1e6;
    Some(Size { value, from: format!("{} and {}", used.key, free.key), measured: true })
}

/// The findings for the keys under one prefix.
pub fn group(group: &[&Key], known: &Known) -> Vec<Finding> {
    let memory =
        implied::total(points(group, Name::MemoryUsage), points(group, Name::MemoryPercentage), false);
    let whose = memory.as_ref().map_or(Measures::Unknown, |implied| whose_memory(implied, known));
    let finding = |key: &&Key| {
        let (measures, implied, verdict) = match key.name {
            Name::MemoryUsage | Name::MemoryPercentage => {
                (whose, memory, memory_verdict(memory.as_ref(), whose, known))
            }
            Name::Cpu => cpu(&key.history.points, whose, known),
            Name::DiskUsage | Name::DiskPercentage => {
                let total =
                    implied::total(points(group, Name::DiskUsage), points(group, Name::DiskPercentage), true);
                (Measures::Unknown, total, disk_verdict(total.as_ref()))
            }
            Name::DiskAvailable => (Measures::Unknown, None, disk_verdict(None)),
            Name::Network => (Measures::Unknown, None, NETWORK.to_owned()),
            Name::GpuMemoryUsage(i) | Name::GpuMemoryPercentage(i) => {
                let (usage, share) = (Name::GpuMemoryUsage(i), Name::GpuMemoryPercentage(i));
                let total = implied::total(points(group, usage), points(group, share), true);
                (Measures::Unknown, total, gpu_verdict(i, total.as_ref()))
            }
            Name::Gpu(i) => (Measures::Unknown, None, gpu_verdict(i, None)),
        };
        let (key, points) = (key.history.key.clone(), key.history.points.len());
        Finding { key, measures, implied, points, verdict }
    };
    group.iter().map(finding).collect()
}

fn whose_memory(implied: &Implied, known: &Known) -> Measures {
    let (low, high) = implied.likely();
    let meets = |from: f64, to: f64| low <= to && from <= high;
    // The kernel keeps a few percent of what is built in for itself.
    let node = known.node_memory.as_ref().map(|n| (n.value / 1e6, if n.measured { 1.0 } else { 0.95 }));
    let is_node = node.is_some_and(|(mb, share)| meets(mb * share, mb));
    let limit = known.memory_limit.as_ref().map(|l| l.value / 1e6);
    let is_limit = limit.is_some_and(|mb| meets(mb * 0.9999, mb * 1.0001));
    // Many sizes lie in a wide interval, and by chance a limit too.
    let tells = node.is_some() || implied.width().is_some_and(|w| w <= 0.002);
    match (is_node, is_limit) {
        (true, false) => Measures::Node,
        // A limit as large as the node: the same number, but read where the node's are read.
        (true, true) => Measures::Unknown,
        (false, true) => {
            if tells {
                Measures::Container
            } else {
                Measures::Unknown
            }
        }
        // More than the container may have can't be the container's.
        (false, false) if limit.is_some_and(|mb| low > mb) => Measures::Node,
        (false, false) => Measures::Unknown,
    }
}

fn memory_verdict(implied: Option<&Implied>, whose: Measures, known: &Known) -> String {
    let Some(implied) = implied else {
        return "no usage with its percentage at the same step: whose memory it is can't be told".to_owned();
    };
    let (usage, share) = implied.last;
    let pair = format!("usage {} MB is {share} % of {}", words::grouped(usage), words::total(implied));
    let limit = known.memory_limit.as_ref().map(|l| words::size(l.value));
    let verdict = match (whose, limit) {
        (Measures::Node, Some(limit)) => format!("{pair}: a node, not your {limit} container"),
        (Measures::Node, None) => format!("{pair}: the node's memory, with all that runs there"),
        (Measures::Container, _) => format!("{pair}: the container's limit"),
        (Measures::Unknown, Some(limit)) if known.node_memory.is_some() => {
            format!("{pair}: can't be told apart; your limit is {limit}, the node has {}", node_size(known))
        }
        (Measures::Unknown, Some(limit)) => {
            format!("{pair}: beside your limit of {limit} that doesn't tell whose it is; --node-memory may")
        }
        (Measures::Unknown, None) if known.node_memory.is_some() => {
            format!("{pair}: not the node that was given ({})", node_size(known))
        }
        (Measures::Unknown, None) => {
            format!("{pair}; compare it with --memory-limit or --node-memory to see whose it is")
        }
    };
    let from = known.memory_limit.as_ref().map(|l| format!(" (limit by {})", l.from)).unwrap_or_default();
    format!("{verdict}{from}. {}", words::derivation(implied))
}

fn node_size(known: &Known) -> String {
    known.node_memory.as_ref().map(|n| format!("{}, by {}", words::size(n.value), n.from)).unwrap_or_default()
}

/// MLflow reads CPU where it reads memory, in /proc, so it is the node's if the memory is. The other way round a
/// percentage says nothing.
fn cpu(points: &[Point], memory: Measures, known: &Known) -> (Measures, Option<Implied>, String) {
    let mut values: Vec<f64> = points.iter().map(|p| p.value).filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let median = quantile(&values, 0.5);
    let share = format!("{} %", words::short_share(median));
    let own = known.cpu_limit.as_ref().map(|l| words::short(l.value));
    let compare = own.as_ref().map(|own| format!(", not comparable with your {own}")).unwrap_or_default();
    let measures = if memory == Measures::Node { Measures::Node } else { Measures::Unknown };
    let verdict = match (&known.node_cores, measures) {
        (Some(cores), Measures::Node) => {
            let used = words::short(median / 100.0 * cores.value);
            format!("{share} (median) of {} cores = {used} cores{compare}", words::short(cores.value))
        }
        (None, Measures::Node) => {
            format!(
                "{share} (median) of all cores of the node{compare}; with --node-cpus it can be counted in cores"
            )
        }
        (Some(cores), _) if memory == Measures::Unknown => {
            let (used, all) = (words::short(median / 100.0 * cores.value), words::short(cores.value));
            format!(
                "{share} (median): if of the node's {all} cores, {used} cores{compare}; whose they are can't be told"
            )
        }
        _ => format!(
            "{share} (median) of the cores that the logging process saw in /proc, as many as they were{compare}"
        ),
    };
    (measures, None, verdict)
}

fn disk_verdict(implied: Option<&Implied>) -> String {
    let about = "the file system behind / of the logging process; where that is an overlay it is the node's disk, \
                 shared by every container there";
    match implied {
        Some(implied) => format!("{about}. {}", words::derivation(implied)),
        None => about.to_owned(),
    }
}

fn gpu_verdict(index: u32, implied: Option<&Implied>) -> String {
    let about = format!(
        "GPU {index} as a whole, whoever uses it; MLflow logs every GPU that it sees, whatever CUDA_VISIBLE_DEVICES says"
    );
    match implied {
        Some(implied) => format!("{about}. {}", words::derivation(implied)),
        None => about,
    }
}

const NETWORK: &str = "all interfaces of the logging process's network namespace, lo included, since the monitor started: \
                       a pod's in Kubernetes, the node's with the host's network; not a rate";
