//! Samples the stacks of processes and prints them as JSON: `stacks SECONDS PID[:worker] …`. For tests and benchmarks.

use std::io::Write;
use std::time::{Duration, Instant};

use rankscope::stacks::{Role, Sampler, Target};

fn main() {
    let mut words = std::env::args().skip(1);
    let seconds: f64 = words.next().and_then(|word| word.parse().ok()).expect("SECONDS");
    let target = |word: String| {
        let (pid, role) = match word.strip_suffix(":worker") {
            Some(pid) => (pid.parse(), Role::Worker),
            None => (word.parse(), Role::Main),
        };
        Target { pid: pid.expect("PID"), role, name: "python".to_owned() }
    };
    let start = Instant::now();
    let window = Duration::from_secs_f64(seconds);
    let handle = Sampler::start(words.map(target).collect(), window, start).expect("a thread");
    std::thread::sleep(window);
    let (stacks, cpu) = handle.finish();
    let all = serde_json::json!({ "stacks": stacks, "cpu_seconds": cpu.as_secs_f64() });
    writeln!(std::io::stdout(), "{all}").expect("stdout");
}
