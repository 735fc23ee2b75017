//! The keys that MLflow's monitor writes: `system/<name>` or `system/<node id>/<name>`.

use super::History;
use crate::series;

/// A series by the name that MLflow gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    MemoryUsage,
    MemoryPercentage,
    Cpu,
    DiskUsage,
    DiskPercentage,
    DiskAvailable,
    Network,
    GpuMemoryUsage(u32),
    GpuMemoryPercentage(u32),
    Gpu(u32),
}

impl Name {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "system_memory_usage_megabytes" => Self::MemoryUsage,
            "system_memory_usage_percentage" => Self::MemoryPercentage,
            "cpu_utilization_percentage" => Self::Cpu,
            "disk_usage_megabytes" => Self::DiskUsage,
            "disk_usage_percentage" => Self::DiskPercentage,
            "disk_available_megabytes" => Self::DiskAvailable,
            "network_receive_megabytes" | "network_transmit_megabytes" => Self::Network,
            _ => {
                let (index, rest) = text.strip_prefix("gpu_")?.split_once('_')?;
                let index = index.parse().ok()?;
                match rest {
                    "memory_usage_megabytes" => Self::GpuMemoryUsage(index),
                    "memory_usage_percentage" => Self::GpuMemoryPercentage(index),
                    "memory_usage_gigabytes" | "utilization_percentage" => Self::Gpu(index),
                    "power_usage_watts" | "power_usage_percentage" => Self::Gpu(index),
                    _ => return None,
                }
            }
        })
    }
}

pub struct Key<'a> {
    /// The node id, or empty.
    pub prefix: &'a str,
    /// Behind the prefix, as it stands.
    pub text: &'a str,
    pub name: Name,
    pub history: &'a History,
}

pub fn split(key: &str) -> Option<(&str, &str)> {
    let rest = key.strip_prefix("system/")?;
    Some(rest.rsplit_once('/').unwrap_or(("", rest)))
}

/// Whether MLflow's monitor writes series of that name.
pub fn is_monitors(key: &str) -> bool {
    split(key).is_some_and(|(_, name)| Name::parse(name).is_some())
}

/// Whether the key is one of rankscope's that tells the size of a node or a limit.
pub fn is_evidence(key: &str) -> bool {
    let own = [
        &series::CONTAINER_MEMORY_LIMIT,
        &series::CONTAINER_CPU_LIMIT,
        &series::NODE_MEMORY_USAGE,
        &series::NODE_MEMORY_AVAILABLE,
    ];
    split(key).is_some_and(|(_, name)| own.iter().any(|s| s.name == name))
}

/// MLflow's series, sorted by prefix and kind. Under a subject of rankscope's, `gpu_0_…` is rankscope's own.
pub fn monitors(histories: &[History]) -> Vec<Key<'_>> {
    let is_own = |name: &str| series::ALL.iter().any(|s| s.name == name);
    let all = || histories.iter().filter_map(|h| split(&h.key).map(|(prefix, name)| (prefix, name, h)));
    let subjects: Vec<&str> =
        all().filter(|(_, name, _)| is_own(name)).map(|(prefix, _, _)| prefix).collect();
    let mut keys: Vec<Key> = all()
        .filter(|(prefix, _, _)| prefix.is_empty() || !subjects.contains(prefix))
        .filter_map(|(prefix, text, history)| Some(Key { prefix, text, name: Name::parse(text)?, history }))
        .collect();
    keys.sort_by(|a, b| (a.prefix, a.name, a.text).cmp(&(b.prefix, b.name, b.text)));
    keys
}
