//! `rankscope scope`: which number is whose, here.

mod family;
mod gpus;
mod ranks_here;

use rankscope_core::ranks::{self, Launcher, Place};
use rankscope_core::rate::memory_limit;
use rankscope_core::sample::Sample;
use serde_json::{Value, json};

use super::exit;
use super::measure::{Measurement, Request};
use crate::ceiling::{CpuCeiling, cpu_ceiling};
use crate::printer::{self, bytes};
use crate::sources::{RanksBelow, Sources};
use crate::{env_vars, environ};
use family::Family;
use gpus::Views;
use ranks_here::Ranks;

pub struct Config {
    pub request: Request,
    pub json: bool,
}

pub fn scope(config: &Config) -> Result<u8, String> {
    let (live, pid) = (config.request.roots.is_empty(), config.request.pid);
    let place = match (live, pid) {
        (true, Some(pid)) => ranks::place_of(&environ::of(pid)),
        (true, None) => env_vars::Job::ours().place,
        (false, _) => Place::default(),
    };
    let mut request = config.request.clone();
    if live && place.launcher != Some(Launcher::Torchrun) {
        request.options.ranks_below = RanksBelow::Said { own: place.launcher, launcher: false };
    }
    let mut measurement = Measurement::start(&request)?;
    measurement.second_reading();
    let sample = measurement.sample().ok_or("nothing could be read")?.clone();
    let report = Report::of(&mut measurement.sources, &sample, &measurement.readings, place);
    match config.json {
        true => printer::data(&report.json().to_string()),
        false => printer::text(&report.text()),
    }
    Ok(exit::DONE)
}

struct Report {
    container: bool,
    why: String,
    cgroup: &'static str,
    kernel: Option<String>,
    sandbox: Option<String>,
    node: String,
    ceiling: Option<CpuCeiling>,
    families: Vec<Family>,
    gpus: Views,
    /// What `free` shows, and what may be used. Bytes.
    node_memory: Option<u64>,
    memory_limit: Option<(u64, Option<String>)>,
    ranks: Ranks,
}

impl Report {
    fn of(
        sources: &mut Sources,
        sample: &Sample,
        readings: &rankscope_core::reading::Readings,
        place: Place,
    ) -> Report {
        let ranks = Ranks { place, below: sources.look_for_ranks().cloned() };
        let (container, why) = sources.cgroups().container();
        let node_memory = sample.node.memory_total.value.as_ref().ok().copied();
        let limit = sample.memory.as_ref().ok().and_then(|m| memory_limit(m, node_memory).ok());
        Report {
            container,
            why,
            cgroup: sources.cgroups().layout.as_str(),
            kernel: sources.host.kernel.clone(),
            sandbox: sources.host.sandbox.as_ref().map(|s| format!("{}: {}", s.name, s.why)),
            node: sources.host.node_name.clone(),
            ceiling: cpu_ceiling(sources, sample),
            families: family::all(sources, sample, readings),
            gpus: Views::of(&sources.gpu_surroundings()),
            node_memory,
            memory_limit: limit.map(|l| (l.bytes, l.level.and(l.origin.level.as_deref()).map(str::to_owned))),
            ranks,
        }
    }

    fn json(&self) -> Value {
        json!({
            "environment": {
                "container": self.container,
                "why": self.why,
                "cgroup": self.cgroup,
                "kernel": self.kernel,
                "sandbox": self.sandbox,
                "node": self.node,
                "gpus": self.gpus.json(),
                "rank": self.ranks.place.rank,
                "world_size": self.ranks.world(),
                "rank_conflict": self.ranks.place.conflict,
                "ranks_below": self.ranks.below.as_ref().map(|below| &below.ranks),
            },
            "ranks": self.ranks.words(),
            "thread_hint": self.ceiling.as_ref().map(|c| c.threads),
            "thread_hint_why": self.ceiling.as_ref().map(CpuCeiling::why),
            "families": self.families.iter().map(Family::json).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let place = if self.container { "in a container" } else { "not in a container" };
        let kernel = self.kernel.as_deref().map(|k| format!(", Linux {k}")).unwrap_or_default();
        let mut text = format!("{place} (cgroup {}{kernel})\n  {}\n", self.cgroup, self.why);
        if let Some(sandbox) = &self.sandbox {
            text.push_str(&format!("  the kernel is a sandbox's, not the node's: {sandbox}\n"));
        }
        let head = ["WHOSE", "WHAT", "NOW", "LIMIT", "SAME FOR RANKS HERE", "READ FROM"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let shown = || self.families.iter().filter(|f| !f.is_void(self.container));
        rows.extend(shown().map(Family::row));
        text.push('\n');
        text.push_str(&printer::table(&rows));
        let notes: Vec<String> = shown().filter_map(Family::footnote).collect();
        if !notes.is_empty() {
            text.push_str(&format!("\n\n{}", notes.join("\n")));
        }
        text.push_str("\n\n");
        text.push_str(&self.lesson());
        text
    }

    /// What a person should take home.
    fn lesson(&self) -> String {
        let mut lines: Vec<String> = self.ranks.words().into_iter().collect();
        if let (Some(total), Some((limit, level))) = (self.node_memory, &self.memory_limit) {
            let at =
                level.as_deref().map(|l| format!(", set at {}", printer::cgroup_path(l))).unwrap_or_default();
            lines.push(format!(
                "Memory: free, top and psutil show the node's {}; this job may use {}{at}.",
                bytes(total as f64),
                bytes(*limit as f64)
            ));
        }
        match &self.ceiling {
            Some(c) => lines.push(format!(
                "Threads: {} at once ({}). OMP_NUM_THREADS and data loader workers beyond that wait for each other.",
                c.threads,
                c.in_short()
            )),
            None => lines.push("Threads: neither quota, cpuset nor affinity could be read.".to_owned()),
        }
        lines.extend(self.gpus.line());
        lines.join("\n")
    }
}
