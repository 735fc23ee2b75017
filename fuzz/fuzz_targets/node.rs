//! /proc/{stat,loadavg,uptime} and pressure files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rankscope_core::parse::{node, pressure};

fuzz_target!(|text: &[u8]| {
    let _ = node::cpu_times(text).map(|times| times.busy());
    let _ = node::online_cpus(text);
    if let Ok(load) = node::loadavg(text) {
        assert!(load.one_minute.is_finite() && load.one_minute >= 0.0);
    }
    if let Ok(seconds) = node::uptime(text) {
        assert!(seconds.is_finite() && seconds >= 0.0);
    }
    if let Ok(pressure) = pressure::parse(text) {
        assert!(pressure.some_us.is_some() || pressure.full_us.is_some());
    }
});
