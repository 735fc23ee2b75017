//! rankscope: I/O and commands around `rankscope-core`. Library and binary in one, since the Python wheel's console
//! command needs the same `run`.

pub mod board;
pub mod ceiling;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod diagnose;
pub mod earlier;
pub mod ending;
pub mod env_vars;
pub mod environ;
mod gpu_faults;
pub mod kernel_file;
pub mod look;
pub mod machine;
pub mod marks;
pub mod mlflow;
pub mod near;
pub mod printer;
pub mod probe;
pub mod recorded;
pub mod report;
pub mod sampler;
pub mod sources;
pub mod stacks;
pub mod store;
pub mod subject;
pub mod supervise;
pub mod tee;
mod together;
pub mod watched;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use rankscope_core::audit::{Known, Size};

use cli::{Cli, Command, MlflowArgs, MlflowSeries, RecordArgs, TargetArgs};
use commands::{
    advise, audit, compare, diagnose as diagnosing, doctor, exit, measure, postmortem, reap, record,
    report as report_command, run, sample, scope, snapshot, sync, watch,
};
use sources::Options;

/// The whole program: what was typed → plain settings → one function a command.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    if args.first().is_some_and(|name| name == probe::NAME) {
        return probe::serve(args.get(1).is_some_and(|word| word == probe::ORPHAN));
    }
    if let Some(name) = args.first().filter(|name| *name == tee::NAME || *name == tee::NAME_TERMINAL) {
        return tee::serve(name == tee::NAME_TERMINAL);
    }
    let cli = match Cli::of(&args) {
        Ok((cli, ignored)) => {
            ignored.iter().for_each(|why| printer::say(&format!("ignored in the environment: {why}")));
            cli
        }
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::WRONG_USE } else { exit::DONE });
        }
    };
    let json = cli.json;
    let result = match cli.command {
        Command::Run(args) => Ok(run::run(run::Config {
            cmd: args.cmd,
            tee: args.tee,
            export_run_id: args.export_run_id,
            record: record_config(args.record, json, cli.verbose > 0),
        })),
        Command::Watch(args) => watch::watch(&watch::Config {
            pid: args.pid,
            record: record_config(args.record, json, cli.verbose > 0),
        }),
        Command::Reap(args) => reap::reap(&reap::Config {
            stale_after: args.stale_after,
            yes: args.yes,
            tracking_uri: args.tracking_uri,
            experiment: args.experiment,
            store: args.store,
            json,
        }),
        Command::Sync(args) => sync::sync(&sync::Config {
            dir: args.dir,
            store: args.store,
            tracking_uri: args.tracking_uri,
            json,
        }),
        Command::Diagnose(args) => diagnosing::diagnose(&diagnosing::Config {
            pid: args.pid,
            run: args.run,
            duration: args.duration.map(Duration::from_secs_f64),
            html: args.html,
            flamegraph: args.flamegraph,
            speedscope: args.speedscope,
            observations: args.observations,
            catalogue: args.catalogue,
            no_gpu: args.no_gpu,
            no_mlflow: args.no_mlflow,
            store: args.store,
            tracking_uri: args.tracking_uri,
            json,
        }),
        Command::Postmortem(args) => postmortem::postmortem(&postmortem::Config {
            what: args.what,
            html: args.html,
            store: args.store,
            tracking_uri: args.tracking_uri,
            json,
        }),
        Command::Compare(args) => compare::compare(&compare::Config {
            what: args.what,
            store: args.store,
            tracking_uri: args.tracking_uri,
            json,
        }),
        Command::Report(args) => report_command::report(&report_command::Config {
            what: args.what,
            output: args.output,
            store: args.store,
            tracking_uri: args.tracking_uri,
        }),
        Command::Sample(args) => {
            let options =
                Options { mounts: args.mount, pss: args.pss, no_gpu: args.no_gpu, ..Options::default() };
            let request = request(args.target, options, args.interval);
            sample::sample(&sample::Config { request, count: args.count, json })
        }
        Command::Scope(args) => {
            scope::scope(&scope::Config { request: request(args.target, Options::default(), 1.0), json })
        }
        Command::Doctor(args) => doctor::doctor(&doctor::Config { pid: args.pid, store: args.store, json }),
        Command::Snapshot(args) => {
            snapshot::snapshot(&snapshot::Config { dir: args.dir, pid: args.pid, json })
        }
        Command::Advise(args) => advise::advise(&advise::Config {
            file: args.file,
            template: args.template,
            trainer: args.trainer,
            version: args.trainer_version,
            section: args.section,
            task: args.task,
            catalogues: args.catalogue,
            json,
        }),
        Command::Audit(args) => {
            let given = |value: Option<f64>, option: &str| {
                value.map(|value| Size { value, from: option.to_owned(), measured: false })
            };
            let known = Known {
                memory_limit: given(args.memory_limit, "--memory-limit"),
                cpu_limit: given(args.cpu_limit, "--cpu-limit"),
                node_memory: given(args.node_memory, "--node-memory"),
                node_cores: given(args.node_cpus, "--node-cpus"),
            };
            let (run_id, tracking_uri, here) = (args.run_id, args.tracking_uri, args.here);
            audit::audit(&audit::Config { run_id, tracking_uri, known, here, json })
        }
    };
    let code = result.unwrap_or_else(|message| {
        printer::say(&message);
        exit::CANT_READ
    });
    if sources::gpu::alive() {
        // The usual way out unloads the driver's library, and a thread may hang in it. Nothing is left to be written.
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(code)) }
    }
    ExitCode::from(code)
}

fn record_config(args: RecordArgs, json: bool, verbose: bool) -> record::Config {
    record::Config {
        store: args.store,
        interval: Duration::from_secs_f64(args.interval),
        window: Duration::from_secs_f64(args.window),
        options: Options { mounts: args.mount, pss: args.pss, no_gpu: args.no_gpu, ..Options::default() },
        stacks: args.stacks,
        grace: Duration::from_secs_f64(args.grace),
        mlflow: mlflow_options(args.mlflow),
        json,
        verbose,
    }
}

fn mlflow_options(args: MlflowArgs) -> record::MlflowOptions {
    record::MlflowOptions {
        tracking_uri: args.tracking_uri,
        experiment: args.experiment,
        run_name: args.run_name,
        all_series: args.mlflow_series == MlflowSeries::All,
        window_ms: args.mlflow_window.map(|seconds| (seconds * 1e3).round() as i64),
        set_status: args.set_status,
        no_report: args.no_report,
        placement: args.placement.unwrap_or_default().0,
    }
}

fn request(target: TargetArgs, options: Options, interval: f64) -> measure::Request {
    measure::Request {
        pid: target.pid,
        roots: target.root,
        options,
        interval: Duration::from_secs_f64(interval),
    }
}
