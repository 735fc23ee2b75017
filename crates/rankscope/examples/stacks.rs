//! Samples the stacks of processes and prints them as JSON: `stacks SECONDS PID[:worker] …`. With `--graphs DIR` first, a
//! flame graph and a speedscope file of them go there. For tests and benchmarks.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rankscope::stacks::{Role, Sampler, Target};
use rankscope_core::diagnose::observations::{Rank, Stacks};
use rankscope_core::diagnose::{flamegraph, profile, speedscope};

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let graphs = (words[0] == "--graphs").then(|| words.drain(..2).nth(1).expect("DIR"));
    let seconds: f64 = words.remove(0).parse().expect("SECONDS");
    let start = Instant::now();
    let window = Duration::from_secs_f64(seconds);
    let targets: Vec<Target> = words.iter().map(|word| target(word)).collect();
    let ranks = targets.iter().map(|target| Rank { pid: target.pid, ..Rank::default() }).collect::<Vec<_>>();
    let handle = Sampler::start(targets, window, start).expect("a thread");
    std::thread::sleep(window);
    let (stacks, cpu) = handle.finish();
    if let Some(dir) = graphs {
        draw(Path::new(&dir), &stacks, &ranks);
    }
    let all = serde_json::json!({ "stacks": stacks, "cpu_seconds": cpu.as_secs_f64() });
    writeln!(std::io::stdout(), "{all}").expect("stdout");
}

fn target(word: &str) -> Target {
    let (pid, role) = match word.strip_suffix(":worker") {
        Some(pid) => (pid, Role::Worker),
        None => (word, Role::Main),
    };
    Target { pid: pid.parse().expect("PID"), role, name: "python".to_owned() }
}

fn draw(dir: &Path, stacks: &Stacks, ranks: &[Rank]) {
    let profiles = profile::of_ranks(stacks, ranks, &|sample| sample.gil.map(f64::from));
    let file = serde_json::to_string(&speedscope::file("job", stacks, &profiles)).expect("JSON");
    std::fs::write(dir.join("stacks.speedscope.json"), file).expect("a file");
    std::fs::write(dir.join("stacks.svg"), flamegraph::svg("job", stacks, &profiles)).expect("a file");
}
