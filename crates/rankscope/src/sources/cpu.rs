//! The cpu controller of the own cgroup and of every visible level, cpuset and affinity.

use rankscope_core::cgroup::{Level, Version};
use rankscope_core::gap::{Gap, Measured};
use rankscope_core::parse::cpu_list::{self, CpuSet};
use rankscope_core::parse::keyed::{self, Field};
use rankscope_core::parse::{Malformed, limit, pid, single};
use rankscope_core::reading::Origin;
use rankscope_core::sample::{Cpu, CpuLevel, Raw, Throttling};

use super::cgroup::{Cgroups, Place, contained, path};
use super::{measured, raw};
use crate::kernel_file::{Buffer, KernelFile};
use crate::machine::Machine;

pub struct CpuSource {
    usage: Measured<KernelFile>,
    accounting: Version,
    version: Version,
    levels: Vec<LevelFiles>,
    allowed: Allowed,
}

struct LevelFiles {
    /// cpu.max, or cpu.cfs_quota_us with cpu.cfs_period_us.
    quota: KernelFile,
    period: Option<KernelFile>,
    stat: KernelFile,
}

/// CPUs that cpuset and affinity leave: what a process can run on, in a container or not.
pub struct Allowed {
    cpuset: Option<KernelFile>,
    status: KernelFile,
}

impl CpuSource {
    pub fn new(machine: &Machine, cgroups: &Cgroups, pid: &str) -> Measured<CpuSource> {
        let place = contained(&cgroups.cpu);
        let accounting = contained(&cgroups.cpu_accounting);
        let (version, levels) = match (&place, &accounting) {
            (Ok(place), _) => (
                place.version,
                place.levels.iter().filter_map(|l| LevelFiles::open(machine, place, l)).collect(),
            ),
            // Usage is accounted for a group that has no quota of its own.
            (Err(_), Ok(accounting)) => (accounting.version, Vec::new()),
            (Err(gap), Err(_)) => return Err(gap.clone()),
        };
        let usage = accounting.clone().map(|place| {
            let name = if place.version == Version::V1 { "cpuacct.usage" } else { "cpu.stat" };
            KernelFile::open(machine, place.origin(place.own(), name))
        });
        let accounting = accounting.map_or(version, |p| p.version);
        Ok(CpuSource { usage, accounting, version, levels, allowed: Allowed::new(machine, cgroups, pid) })
    }

    pub fn read(&mut self, buffer: &mut Buffer) -> Cpu {
        let allowed = self.allowed.read(buffer);
        let usage_ns = match &self.usage {
            Err(gap) => Raw::missing(gap.clone(), allowed.origin.clone()),
            Ok(file) if self.accounting == Version::V1 => file.raw(buffer, single),
            Ok(file) => {
                let field = file.read(buffer).map(|text| keyed::lookup(text, ["usage_usec"]));
                let usec = field.and_then(|[f]| measured(f, &file.origin.source, "usage_usec"));
                raw(usec.map(|us| us.saturating_mul(1000)), file)
            }
        };
        let levels = self.levels.iter().map(|l| l.read(self.version, buffer)).collect();
        Cpu { usage_ns, levels, allowed }
    }
}

impl LevelFiles {
    fn open(machine: &Machine, place: &Place, level: &Level) -> Option<LevelFiles> {
        let file = |name: &str| KernelFile::open(machine, place.origin(level, name));
        let v1 = place.version == Version::V1;
        let quota = file(if v1 { "cpu.cfs_quota_us" } else { "cpu.max" });
        let stat = file("cpu.stat");
        let there = [&quota, &stat].into_iter().any(|f| f.is_open() || machine.exists(&f.origin.source));
        there.then(|| LevelFiles { quota, period: v1.then(|| file("cpu.cfs_period_us")), stat })
    }

    fn read(&self, version: Version, buffer: &mut Buffer) -> CpuLevel {
        let quota = match &self.period {
            None => self.quota.raw(buffer, limit::cpu_max),
            Some(period) => raw(self.quota_v1(period, buffer), &self.quota),
        };
        let text = self.stat.read(buffer);
        let throttling = text.and_then(|text| self.throttling(version, text));
        CpuLevel { quota, throttling: raw(throttling, &self.stat) }
    }

    fn quota_v1(&self, period: &KernelFile, buffer: &mut Buffer) -> Measured<Option<f64>> {
        let Some(quota) = self.quota.parse(buffer, limit::cfs_quota)? else { return Ok(None) };
        let period = period.parse(buffer, single)?;
        let bad =
            || Gap::broken(format!("{}: quota {quota} in a period of {period}", self.quota.origin.source));
        limit::cores(quota, period).ok_or_else(bad).map(Some)
    }

    fn throttling(&self, version: Version, text: &[u8]) -> Measured<Throttling> {
        let source = &self.stat.origin.source;
        let time = if version == Version::V1 { "throttled_time" } else { "throttled_usec" };
        let [periods, throttled, throttled_time] = keyed::lookup(text, ["nr_periods", "nr_throttled", time]);
        if [periods, throttled, throttled_time].contains(&Field::NoKey) {
            return Err(Gap::absent(format!(
                "{source} has no {time}: the cpu controller is not enabled here"
            )));
        }
        let per_unit = if version == Version::V1 { 1 } else { 1000 };
        Ok(Throttling {
            periods: measured(periods, source, "nr_periods")?,
            throttled: measured(throttled, source, "nr_throttled")?,
            throttled_ns: measured(throttled_time, source, time)?.saturating_mul(per_unit),
        })
    }
}

impl Allowed {
    pub fn new(machine: &Machine, cgroups: &Cgroups, pid: &str) -> Allowed {
        let cpuset = cgroups.cpuset.as_ref().ok().and_then(|place| {
            // v1 keeps what the administrator wrote in cpuset.cpus, which may be empty.
            let names: &[&str] = match place.version {
                Version::V1 => &["cpuset.effective_cpus", "cpuset.cpus"],
                Version::V2 => &["cpuset.cpus.effective"],
            };
            let candidates = place.levels.iter().flat_map(|l| names.iter().map(move |n| (l, *n)));
            let full = |(level, name): &(&Level, &str)| {
                machine
                    .read(&path(level, name))
                    .is_ok_and(|t| cpu_list::parse(&t).is_some_and(|s| s.count() > 0))
            };
            let (level, name) = candidates.into_iter().find(full)?;
            Some(KernelFile::open(machine, place.origin(level, name)))
        });
        let origin =
            Origin { identity: None, source: format!("/proc/{pid}/status").into(), level: None, note: None };
        Allowed { cpuset, status: KernelFile::open(machine, origin) }
    }

    pub fn read(&self, buffer: &mut Buffer) -> Raw<u32> {
        let list =
            |text: &[u8]| cpu_list::parse(text).ok_or(Malformed { line: 1, expected: "a list of CPUs" });
        let cpuset: Option<(CpuSet, &KernelFile)> =
            self.cpuset.as_ref().and_then(|f| Some((f.parse(buffer, list).ok()?, f)));
        let affinity = self.status.read(buffer).and_then(|text| {
            pid::cpus_allowed(text)
                .ok_or_else(|| Gap::absent(format!("{} has no Cpus_allowed_list", self.status.origin.source)))
        });
        match (cpuset, affinity) {
            (None, affinity) => raw(affinity.map(|set| set.count()), &self.status),
            (Some((cpuset, file)), Err(_)) => raw(Ok(cpuset.count()), file),
            (Some((cpuset, file)), Ok(affinity)) => {
                // An affinity mask can name CPUs that the cpuset took away; the kernel then ignores those.
                let both = cpuset.and(&affinity).count();
                if both == cpuset.count() || both == 0 {
                    raw(Ok(cpuset.count()), file)
                } else {
                    raw(Ok(both), &self.status)
                }
            }
        }
    }
}
