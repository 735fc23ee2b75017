//! For bench/sample_cost.py: full samples one after another, which no interval of the program's own allows.
//!
//! `tight_loop SAMPLES PAUSE_S PID` prints the thread's CPU time per sample in nanoseconds, pauses included.

#![allow(clippy::print_stdout, reason = "the benchmark reads it")]

use std::time::Duration;

use rankscope::commands::measure::{Measurement, Request};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.first().is_some_and(|name| name == rankscope::probe::NAME) {
        rankscope::run(arguments.into_iter().map(Into::into));
        return Ok(());
    }
    let [_, samples, pause, pid] = arguments.as_slice() else {
        return Err("tight_loop SAMPLES PAUSE_S PID".into());
    };
    let samples: u32 = samples.parse()?;
    let pause = Duration::from_secs_f64(pause.parse()?);
    let mut measurement = Measurement::start(&Request { pid: Some(pid.parse()?), ..Request::default() })?;
    for _ in 0..3 {
        measurement.step();
    }
    let start = thread_cpu()?;
    for _ in 0..samples {
        measurement.step();
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
    println!("{}", (thread_cpu()? - start).as_nanos() / u128::from(samples));
    Ok(())
}

fn thread_cpu() -> std::io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing for the whole call.
    if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0)))
}
