//! Many ranks of one job in one process, for tests and benchmarks of what their server has to bear:
//! `many_ranks PATTERN RANKS WINDOW SECONDS GRACE STORE`, seconds with a fraction. Nothing is measured: windows are made
//! up, everything after them is the real store and the real sink, each rank with its own.
//!
//! PATTERN `rankscope`: as `rankscope run` in each rank. `monitor`: as MLflow's own monitor in each rank, which asks for
//! the run and then sends 13 values, once a WINDOW, and ends for good after a refusal. Prints one JSON object.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rankscope::clock::{self, RunStart};
use rankscope::mlflow::sink::{Config, Sink};
use rankscope::mlflow::{Client, Making, Metric, Pace, Plan, RunStatus, Settings, batches, create};
use rankscope::store::{About, End, Target, Writer, folder_name};
use rankscope_core::ending::{Ending, Evidence, Exit, decide};
use rankscope_core::reading::Origin;
use rankscope_core::series::{self, Class, Scope};
use rankscope_core::window::{Window, WindowRow};
use serde_json::json;

const KEY: &str = "many-ranks";
/// Values of a machine without GPUs and one of its GPUs.
const MONITORED: usize = 13;
/// MLflow's client tries again so often.
const RETRIES: u32 = 7;
/// A scheduler starts ranks within this time.
const STARTS: Duration = Duration::from_secs(1);

#[derive(Clone)]
struct Load {
    ranks: u32,
    window: Duration,
    length: Duration,
    grace: Duration,
    store: PathBuf,
    settings: Settings,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seconds = |at: usize| Duration::from_secs_f64(args[at].parse().expect("seconds"));
    let load = Load {
        ranks: args[1].parse().expect("a number of ranks"),
        window: seconds(2),
        length: seconds(3),
        grace: seconds(4),
        store: PathBuf::from(&args[5]),
        settings: Settings::from_env(None).expect("settings").expect("MLFLOW_TRACKING_URI"),
    };
    let told = match args[0].as_str() {
        "monitor" => monitors(&load),
        _ => recorders(&load),
    };
    writeln!(std::io::stdout(), "{told}").expect("output");
}

struct Rank {
    writer: Writer,
    sink: Sink,
}

fn recorders(load: &Load) -> serde_json::Value {
    let start = (clock::unix_ms(), clock::boottime_ns());
    let ranks: Vec<Rank> = (0..load.ranks).map(|rank| start_rank(load, rank, start)).collect();
    let began = Instant::now();
    let mut number = 0;
    while began.elapsed() < load.length {
        number += 1;
        std::thread::sleep((load.window * number).saturating_sub(began.elapsed()));
        for (rank, one) in (0..).zip(&ranks) {
            one.writer.window(window(load, rank, number, start));
        }
    }
    let ended = Instant::now();
    let threads: Vec<_> = ranks
        .into_iter()
        .map(|rank| {
            std::thread::spawn({
                let load = load.clone();
                move || end(&load, rank)
            })
        })
        .collect();
    let problems: Vec<String> =
        threads.into_iter().filter_map(|thread| thread.join().expect("a rank")).collect();
    json!({"windows": number, "ranks_with_problems": problems.len(), "problem": problems.first(),
        "end_s": ended.elapsed().as_secs_f64()})
}

fn start_rank(load: &Load, rank: u32, start: (i64, u64)) -> Rank {
    let plan = Plan {
        server: Some(load.settings.server()),
        run_name: Some(KEY.to_owned()).filter(|_| rank == 0),
        ..Plan::default()
    };
    let about = About {
        job: KEY.to_owned(),
        rank: Some(rank),
        world_size: Some(load.ranks),
        start_unix_ms: start.0,
        start_boottime_ns: start.1,
        boot_id: clock::boot_id(),
        interval: load.window / 10,
        window: load.window,
        program: "simulated".to_owned(),
        delivery: serde_json::to_value(&plan).ok(),
    };
    let folder = folder_name(Some(KEY), start.0, std::process::id());
    let writer =
        Writer::start(Target { asked: Some(load.store.clone()), folder, rank, ..Target::default() }, about);
    writer.note("node", "simulated".to_owned());
    let sink = Sink::start(Config {
        settings: load.settings.clone(),
        tracking_uri: None,
        plan,
        place: writer.place(),
        interval: load.window / 10,
        pace: Pace::new(load.window, Some(rank), Some(load.ranks)),
        verbose: false,
        run_start: RunStart::default(),
    });
    Rank { writer, sink: sink.expect("a thread") }
}

/// Every core series of a machine without GPUs; those of the node by rank 0.
fn window(load: &Load, rank: u32, number: u32, start: (i64, u64)) -> Window {
    let length_ms = load.window.as_millis() as i64;
    let end_unix_ms = start.0 + length_ms * i64::from(number);
    let delivered = |s: &&&series::Series| {
        s.class == Class::Core
            && s.name != series::TRAINING_STEP.name
            && s.scope != Scope::Gpu
            && (s.scope != Scope::Node || rank == 0)
    };
    let origin = Arc::new(Origin { identity: None, source: "made up".into(), level: None, note: None });
    let row = |(at, series): (usize, &&'static series::Series)| {
        let value = f64::from(rank) + f64::from(number) / 7.0 + at as f64 * 1000.0;
        WindowRow {
            series,
            label: None,
            origin: origin.clone(),
            n: 10,
            mean: value,
            min: value - 1.0,
            max: value + 1.0,
            last: value,
        }
    };
    Window {
        start_unix_ms: end_unix_ms - length_ms,
        end_unix_ms,
        last_unix_ms: end_unix_ms - 1,
        last_boottime_ns: start.1 + load.window.as_nanos() as u64 * u64::from(number) - 1_000_000,
        ticks: 10,
        rows: series::ALL.iter().filter(delivered).enumerate().map(row).collect(),
        missing: Vec::new(),
    }
}

fn end(load: &Load, rank: Rank) -> Option<String> {
    let ended = Instant::now();
    let exit = Exit::Code(0);
    let ending: Ending = decide(&Evidence { exit, ended_unix_ms: clock::unix_ms(), ..Evidence::default() });
    let end = End {
        unix_ms: ending.ended_unix_ms,
        boottime_ns: clock::boottime_ns(),
        exit_code: ending.exit_code,
        signal: None,
        reason: Some(ending.reason.as_str().to_owned()),
    };
    rank.writer.finish(Some(end), load.grace / 2);
    rank.sink.finish(Some(ending), ended, load.grace).problem
}

#[derive(Default)]
struct Monitored {
    sent: u64,
    errors: u64,
    stopped: Option<String>,
    longest: Duration,
}

fn monitors(load: &Load) -> serde_json::Value {
    let mut client = Client::new(&load.settings).expect("a client");
    let plan = Plan { run_name: Some("monitored".to_owned()), ..Plan::default() };
    let making = Making {
        plan: &plan,
        job: "monitored",
        rank: 0,
        token: "monitored",
        program: "simulated",
        start_unix_ms: clock::unix_ms(),
    };
    let run_id = create(&mut client, &making).expect("a run").id;
    let threads: Vec<_> = (0..load.ranks)
        .map(|rank| {
            let (load, run_id) = (load.clone(), run_id.clone());
            std::thread::spawn(move || monitor(&load, rank, &run_id))
        })
        .collect();
    let all: Vec<Monitored> = threads.into_iter().map(|thread| thread.join().expect("a monitor")).collect();
    let stopped: Vec<&String> = all.iter().filter_map(|one| one.stopped.as_ref()).collect();
    json!({"sent_points": all.iter().map(|one| one.sent).sum::<u64>(),
        "failed_requests": all.iter().map(|one| one.errors).sum::<u64>(),
        "ranks_that_stopped": stopped.len(), "problem": stopped.first(),
        "longest_request_s": all.iter().map(|one| one.longest.as_secs_f64()).fold(0.0, f64::max)})
}

fn monitor(load: &Load, rank: u32, run_id: &str) -> Monitored {
    let mut client = Client::new(&load.settings).expect("a client");
    std::thread::sleep(STARTS.mul_f64(fastrand::f64()));
    let began = Instant::now();
    let until = began + load.length + load.grace;
    let mut done = Monitored::default();
    let mut step = 0;
    while began.elapsed() < load.length {
        std::thread::sleep(load.window);
        let metrics = (0..MONITORED).filter_map(|n| {
            let key = format!("system/rank_{rank:03}/series_{n}");
            Metric::new(&key, n as f64, clock::unix_ms(), step).ok()
        });
        let batch = batches(metrics.collect(), Vec::new()).remove(0);
        step += 1;
        let status = patiently(&mut done, until, || client.get_run(run_id)).map(|run| run.status);
        let sent = match status {
            Some(RunStatus::Running) => patiently(&mut done, until, || client.log_batch(run_id, &batch)),
            _ => None,
        };
        if sent.is_none() {
            break;
        }
        done.sent += MONITORED as u64;
    }
    done
}

/// As MLflow's client: what is transient by its status is tried again; a 400 is not, whatever it says.
fn patiently<T>(
    done: &mut Monitored,
    until: Instant,
    mut call: impl FnMut() -> Result<T, rankscope::mlflow::Error>,
) -> Option<T> {
    let mut pause = Duration::from_secs(2);
    for attempt in 0..=RETRIES {
        let began = Instant::now();
        let result = call();
        done.longest = done.longest.max(began.elapsed());
        let error = match result {
            Ok(answer) => return Some(answer),
            Err(error) => error,
        };
        done.errors += 1;
        let over = attempt == RETRIES || Instant::now() > until;
        if error.status() == Some(400) || !error.is_transient() || over {
            done.stopped = Some(error.to_string());
            return None;
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
    None
}
