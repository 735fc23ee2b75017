//! Two whole `--root` trees: their files are named by the input, and `sample` and `scope` go through the library.
//!
//! The input is a list of `@n` lines (n: index in FILES, modulo; the second tree's above), each followed by the text
//! of that file.
#![no_main]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rankscope::commands::measure::{Measurement, Request};
use rankscope::commands::scope;
use rankscope::sources::Options;

const FILES: [&str; 53] = [
    "proc/stat",
    "proc/meminfo",
    "proc/loadavg",
    "proc/uptime",
    "proc/version",
    "proc/net/dev",
    "proc/pressure/cpu",
    "proc/pressure/memory",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/self/status",
    "proc/7/stat",
    "proc/7/status",
    "proc/7/io",
    "proc/8/stat",
    "proc/8/io",
    "proc/sys/kernel/random/boot_id",
    "proc/sys/kernel/hostname",
    "proc/sys/net/core/somaxconn",
    "proc/sys/net/core/netdev_budget",
    "sys/class/net/eth0/device",
    "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data",
    "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data",
    "cg/memory.current",
    "cg/memory.max",
    "cg/memory.high",
    "cg/memory.stat",
    "cg/memory.events",
    "cg/memory.peak",
    "cg/memory.swap.max",
    "cg/memory.pressure",
    "cg/cpu.max",
    "cg/cpu.stat",
    "cg/cpuset.cpus.effective",
    "cg/io.stat",
    "cg/pids.current",
    "cg/a/memory.current",
    "cg/a/memory.max",
    "cg/a/memory.stat",
    "v1/memory.usage_in_bytes",
    "v1/memory.limit_in_bytes",
    "v1/memory.stat",
    "v1/memory.oom_control",
    "v1/cpu.cfs_quota_us",
    "v1/cpu.cfs_period_us",
    "v1/cpuacct.usage",
    "v1/blkio.throttle.io_service_bytes",
    "rankscope-tree.json",
    "proc/diskstats",
    "sys/class/block/dm-0/slaves/sda",
    "sys/devices/platform/gpu.0/load",
    "sys/class/thermal/thermal_zone0/type",
    "sys/class/thermal/thermal_zone0/temp",
];

/// What nearly every tree needs to get anywhere; the input may overwrite it.
const GIVEN: [(&str, &str); 4] = [
    ("proc/self/cgroup", "9:memory,cpu,cpuacct,blkio:/\n0::/a\n"),
    (
        "proc/self/mountinfo",
        "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n31 23 0:27 / /v1 rw - cgroup cgroup rw,memory,cpu,cpuacct,blkio\n",
    ),
    ("proc/uptime", "100.00 90.00\n"),
    ("cg/a/cgroup.type", "domain\n"),
];

static DIR: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    // `scope` prints; libFuzzer speaks on stderr.
    let null = fs::OpenOptions::new().write(true).open("/dev/null").unwrap();
    // SAFETY: both descriptors are open.
    unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), 1) };
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(if memory.is_dir() { memory } else { Path::new("/tmp") }).unwrap()
});

fn write(root: &Path, file: &str, text: &[u8]) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn lay_out(input: &[u8], roots: [&Path; 2]) {
    for root in roots {
        let _ = fs::remove_dir_all(root);
        fs::create_dir_all(root).unwrap();
        GIVEN.iter().for_each(|(file, text)| write(root, file, text.as_bytes()));
    }
    let mut at: Option<usize> = None;
    let mut text = Vec::new();
    let flush = |at: Option<usize>, text: &mut Vec<u8>| {
        if let Some(at) = at {
            write(roots[at / FILES.len() % 2], FILES[at % FILES.len()], text);
        }
        text.clear();
    };
    for line in input.split_inclusive(|b| *b == b'\n') {
        let index = line.strip_prefix(b"@").and_then(|l| std::str::from_utf8(l).ok()?.trim().parse().ok());
        match index {
            Some(index) => {
                flush(at, &mut text);
                at = Some(index);
            }
            None => text.extend_from_slice(line),
        }
    }
    flush(at, &mut text);
}

fn request(roots: &[&Path], pid: Option<u32>) -> Request {
    Request {
        pid,
        roots: roots.iter().map(|r| r.to_path_buf()).collect(),
        options: Options::default(),
        interval: Duration::from_secs(1),
    }
}

fuzz_target!(|input: &[u8]| {
    let (t0, t1) = (DIR.path().join("t0"), DIR.path().join("t1"));
    lay_out(input, [&t0, &t1]);
    for (roots, pid) in [(vec![t0.as_path()], None), (vec![&t0, &t1], None), (vec![&t0, &t1], Some(7))] {
        let measurement = Measurement::start(&request(&roots, pid)).unwrap();
        let readings = &measurement.readings;
        assert!(readings.present.iter().all(|r| r.value.is_finite()));
        // Only room to the limit may be less than nothing: a limit can be lowered below what is used.
        let below = readings.present.iter().find(|r| r.value < 0.0 && !r.series.name.contains("headroom"));
        assert!(below.is_none(), "{below:?}");
        assert!(readings.missing.iter().all(|m| !m.gap.detail.is_empty()));
        let mut names: Vec<_> = readings.present.iter().map(|r| r.name()).collect();
        names.extend(readings.missing.iter().map(|m| m.name()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a series is there twice");
    }
    scope::scope(&scope::Config { request: request(&[&t0, &t1], None), json: true }).unwrap();
    scope::scope(&scope::Config { request: request(&[&t0], None), json: false }).unwrap();
});
