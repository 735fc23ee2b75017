//! The window's courses as lines: each rank's GPUs, main thread and processes; the container's CPU and waits.

use super::super::observations::{Network, Observations, Process, Rank, Series};
use crate::report::Chart;
use crate::report::charts::{ChartLine, Role};
use crate::report::grid::Piece;
use crate::report::track::{Line, Tier, Track, Value};
use crate::series::{Kind, Scope};

/// Points of one line: a picture shows no more.
const POINTS: usize = 600;

pub fn ms(seconds: f64) -> i64 {
    (seconds * 1e3).round() as i64
}

pub fn draw(seen: &Observations, ids: &[u32]) -> (Track, Vec<Chart>) {
    let mut drawing = Drawing { seen, lines: Vec::new(), charts: Vec::new() };
    gpus(&mut drawing, ids);
    main_threads(&mut drawing, ids);
    cpu(&mut drawing, ids);
    data(&mut drawing, ids);
    let slot_ms = ms(seen.slot_seconds).max(1);
    let bucket_ms = slot_ms * every(seen.slots) as i64;
    let end = |slot: usize| seen.started_unix_ms + ms((slot + 1) as f64 * seen.slot_seconds);
    let slots: Vec<usize> = (0..seen.slots).collect();
    let times: Vec<i64> = slots.chunks(every(seen.slots)).filter_map(|c| c.last().map(|&s| end(s))).collect();
    let until = times.last().copied().unwrap_or(seen.started_unix_ms);
    let track = Track {
        ranks: ids.to_vec(),
        times,
        pieces: vec![Piece { from_unix_ms: seen.started_unix_ms, until_unix_ms: until, bucket_ms }],
        tiers: vec![Tier {
            name: if seen.from_record { "windows" } else { "ticks" },
            until_unix_ms: until,
            row_ms: slot_ms,
        }],
        lines: drawing.lines,
        ..Track::default()
    };
    (track, drawing.charts)
}

/// Slots that make one point.
fn every(slots: usize) -> usize {
    slots.div_ceil(POINTS).max(1)
}

/// Places in `seen.gpus` of what a rank uses; all where nobody knows.
pub fn gpus_of(seen: &Observations, place: usize) -> Vec<usize> {
    let own = |rank: &Rank| -> Vec<usize> {
        let places = rank.gpus.iter().map(|label| seen.gpus.iter().position(|gpu| gpu.label == *label));
        places.flatten().collect()
    };
    let own = seen.ranks.get(place).map(own).unwrap_or_default();
    if own.is_empty() { (0..seen.gpus.len()).collect() } else { own }
}

struct Drawing<'a> {
    seen: &'a Observations,
    lines: Vec<Line>,
    charts: Vec<Chart>,
}

/// One line in one chart.
struct Drawn<'a> {
    /// Its role, its name in `words`, and what of: a GPU.
    role: Role,
    word: &'static str,
    label: &'a str,
    scope: Scope,
    /// `None`: the same for all ranks.
    rank: Option<u32>,
}

impl Drawing<'_> {
    /// Into the chart of that id, which is made for its first line. What was never read is not drawn.
    fn add(&mut self, (id, unit): (&'static str, &'static str), drawn: &Drawn, series: &Series) {
        let values = points(series, self.seen.slots);
        if values.iter().all(Option::is_none) {
            return;
        }
        let at = self.charts.iter().position(|chart| chart.id == id).unwrap_or_else(|| {
            let node = id.starts_with("node_");
            self.charts.push(Chart { id, unit, node, lines: Vec::new() });
            self.charts.len() - 1
        });
        let lines = &mut self.charts[at].lines;
        let known = lines.iter().position(|line| line.word == drawn.word && line.label == drawn.label);
        let n = known.unwrap_or(lines.len());
        // Not named by the label: that is whatever a node is called.
        let series = format!("{id}_{n}");
        if known.is_none() {
            let (role, word, label) = (drawn.role, drawn.word, drawn.label.to_owned());
            lines.push(ChartLine { series: series.clone(), role, word, label });
        }
        let (rank, scope, kind, identity) = (drawn.rank, drawn.scope, Kind::Gauge, None);
        self.lines.push(Line { series, rank, kind, scope, identity, values });
    }

    fn constant(&self, value: Option<f32>) -> Series {
        vec![value; self.seen.slots]
    }
}

/// A slot's values merged with those beside it; what was read in none of them stays missing.
fn points(series: &Series, slots: usize) -> Vec<Option<Value>> {
    let merged = |chunk: &[usize]| {
        let read = chunk.iter().filter_map(|&slot| series.get(slot).copied().flatten());
        let read: Vec<f64> = read.map(f64::from).filter(|value| value.is_finite()).collect();
        let last = *read.last()?;
        Some(Value {
            n: read.len() as u64,
            mean: read.iter().sum::<f64>() / read.len() as f64,
            min: read.iter().copied().fold(f64::INFINITY, f64::min),
            max: read.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            last,
        })
    };
    let slots: Vec<usize> = (0..slots).collect();
    slots.chunks(every(slots.len())).map(merged).collect()
}

fn gpus(drawing: &mut Drawing, ids: &[u32]) {
    let seen = drawing.seen;
    for (place, id) in ids.iter().enumerate() {
        for gpu in gpus_of(seen, place).into_iter().map(|n| &seen.gpus[n]) {
            let line =
                |role, word| Drawn { role, word, label: &gpu.label, scope: Scope::Gpu, rank: Some(*id) };
            let limit = drawing.constant(gpu.power_limit);
            drawing.add(("gpu_utilization", "%"), &line(Role::Line, "gpu"), &gpu.utilization);
            drawing.add(("gpu_power", "W"), &line(Role::Line, "gpu"), &gpu.power);
            if gpu.power.iter().any(Option::is_some) {
                drawing.add(("gpu_power", "W"), &line(Role::Limit, "limit"), &limit);
            }
        }
    }
}

fn main_threads(drawing: &mut Drawing, ids: &[u32]) {
    let seen = drawing.seen;
    for ((place, rank), id) in seen.ranks.iter().enumerate().zip(ids) {
        let is_it = |p: &&Process| p.pid == rank.pid && p.rank.is_none_or(|r| r == place);
        let Some(main) = seen.processes.iter().find(is_it).and_then(|p| p.seen_threads.first()) else {
            continue;
        };
        let line = |word| Drawn { role: Role::Line, word, label: "", scope: Scope::Process, rank: Some(*id) };
        let percent = |of: &Series| of.iter().map(|v| v.map(|v| v * 100.0)).collect();
        drawing.add(("main_thread", "%"), &line("on_cpu"), &percent(&main.on_cpu));
        drawing.add(("main_thread", "%"), &line("run_delay"), &percent(&main.run_delay));
    }
}

fn cpu(drawing: &mut Drawing, ids: &[u32]) {
    let seen = drawing.seen;
    let of = |role, word, rank| Drawn { role, word, label: "", scope: Scope::Container, rank };
    drawing.add(("cpu", "cores"), &of(Role::Line, "container", None), &seen.container.cpu);
    for (place, id) in ids.iter().enumerate() {
        let all = sum(seen, place, |p| &p.cpu);
        drawing.add(("cpu", "cores"), &of(Role::Line, "processes", Some(*id)), &all);
    }
    if drawing.charts.iter().any(|chart| chart.id == "cpu") {
        let limit = drawing.constant(seen.container.cpu_limit);
        drawing.add(("cpu", "cores"), &of(Role::Limit, "limit", None), &limit);
    }
    drawing.add(("cpu_waits", "%"), &of(Role::Line, "throttled", None), &seen.container.throttled);
    drawing.add(("cpu_waits", "%"), &of(Role::Line, "waited", None), &seen.container.cpu_pressure);
}

/// Reads, writes, network and waits for them, where there was any.
fn data(drawing: &mut Drawing, ids: &[u32]) {
    let seen = drawing.seen;
    let of = |word, scope, rank| Drawn { role: Role::Line, word, label: "", scope, rank };
    let any = |series: &Series| series.iter().flatten().any(|value| *value > 0.0);
    type Pick = fn(&Process) -> &Series;
    let calls: [(&str, Pick); 4] = [
        ("read_calls", |p| &p.read),
        ("write_calls", |p| &p.written),
        ("disk_read", |p| &p.storage_read),
        ("disk_write", |p| &p.storage_written),
    ];
    for (place, id) in ids.iter().enumerate() {
        for (word, pick) in calls {
            let all = sum(seen, place, pick);
            if any(&all) {
                drawing.add(("disk", "MB/s"), &of(word, Scope::Process, Some(*id)), &all);
            }
        }
    }
    let Network { scope, receive, transmit, .. } = &seen.network;
    let (id, whose) = if scope == "pod" { ("network", Scope::Pod) } else { ("node_network", Scope::Node) };
    let waits = [("for_memory", &seen.container.memory_pressure), ("for_io", &seen.container.io_pressure)];
    for (word, series) in [("receive", receive), ("transmit", transmit)].into_iter().filter(|(_, s)| any(s)) {
        drawing.add((id, "MB/s"), &of(word, whose, None), series);
    }
    for (word, series) in waits.into_iter().filter(|(_, s)| any(s)) {
        drawing.add(("stalls", "%"), &of(word, Scope::Container, None), series);
    }
}

/// Over a rank's processes; missing where none was read.
fn sum(seen: &Observations, place: usize, pick: impl Fn(&Process) -> &Series) -> Series {
    let own: Vec<&Series> = seen.processes.iter().filter(|p| p.rank == Some(place)).map(pick).collect();
    let at = |slot: usize| {
        let read: Vec<f32> = own.iter().filter_map(|series| series.get(slot).copied().flatten()).collect();
        (!read.is_empty()).then(|| read.iter().sum())
    };
    (0..seen.slots).map(at).collect()
}
