//! `--root` trees that nobody recorded: whatever stands in the files, and whatever the files are, `sample` and `scope`
//! through the real binary end well, with sound JSON.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use serde_json::Value;

fn binary(command: &str, roots: &[&Path]) -> Value {
    let mut run = Command::new(env!("CARGO_BIN_EXE_rankscope"));
    run.arg(command).arg("--json");
    roots.iter().for_each(|root| {
        run.arg("--root").arg(root);
    });
    let out = run.output().unwrap();
    assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Every value is a number and every gap has its reason.
fn check_sample(sample: &Value) {
    for series in sample["series"].as_array().unwrap() {
        assert!(series["value"].as_f64().is_some_and(f64::is_finite), "{series}");
    }
    for missing in sample["missing"].as_array().unwrap() {
        assert!(
            !missing["reason"].as_str().unwrap().is_empty()
                && !missing["detail"].as_str().unwrap().is_empty()
        );
    }
}

const FILES: [&str; 22] = [
    "proc/stat",
    "proc/meminfo",
    "proc/loadavg",
    "proc/uptime",
    "proc/version",
    "proc/net/dev",
    "proc/pressure/cpu",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/self/status",
    "proc/7/stat",
    "proc/7/status",
    "proc/7/io",
    "sys/fs/cgroup/memory.current",
    "sys/fs/cgroup/memory.max",
    "sys/fs/cgroup/memory.stat",
    "sys/fs/cgroup/memory.events",
    "sys/fs/cgroup/cpu.max",
    "sys/fs/cgroup/cpu.stat",
    "sys/fs/cgroup/io.stat",
    "sys/fs/cgroup/memory.pressure",
    "rankscope-tree.json",
];

fn write(root: &Path, file: &str, text: &[u8]) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn any_bytes_in_any_file(
        texts in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "[a-z_]{1,9} [0-9]{1,21}\n([a-z_]{1,9} [0-9]{1,21}\n){0,6}".prop_map(String::into_bytes),
            Just(b"max 100000\n".to_vec()),
        ], FILES.len() * 2),
        real_layout in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (t0, t1) = (dir.path().join("t0"), dir.path().join("t1"));
        for (root, texts) in [&t0, &t1].into_iter().zip(texts.chunks(FILES.len())) {
            FILES.iter().zip(texts).for_each(|(file, text)| write(root, file, text));
            if real_layout {
                write(root, "proc/self/cgroup", b"0::/\n");
                write(root, "proc/self/mountinfo", b"30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
            }
        }
        check_sample(&binary("sample", &[&t0]));
        check_sample(&binary("sample", &[&t0, &t1]));
        binary("scope", &[&t1]);
    }
}

#[test]
fn loops_pipes_and_directories_instead_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(root, "proc/self/mountinfo", b"30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    write(root, "proc/self/cgroup", b"0::/a\n");
    fs::create_dir_all(root.join("sys/fs/cgroup/a")).unwrap();
    symlink("loop", root.join("sys/fs/cgroup/a/loop")).unwrap();
    symlink("loop", root.join("sys/fs/cgroup/a/memory.max")).unwrap();
    // A FIFO would block an open for ever.
    assert!(
        Command::new("mkfifo").arg(root.join("sys/fs/cgroup/a/memory.current")).status().unwrap().success()
    );
    fs::create_dir_all(root.join("proc/meminfo")).unwrap();
    fs::create_dir_all(root.join("proc/99999999999999999999/x")).unwrap();
    let sample = binary("sample", &[root]);
    check_sample(&sample);
    assert!(sample["series"].as_array().unwrap().iter().all(|s| s["scope"] != "container"));
}

#[test]
fn numbers_at_their_ends_overflow_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (t0, t1) = (dir.path().join("t0"), dir.path().join("t1"));
    let max = u64::MAX;
    for (root, n, taken) in [(&t0, 0, i64::MIN), (&t1, max, i64::MAX)] {
        write(root, "proc/self/mountinfo", b"30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
        write(root, "proc/self/cgroup", b"0::/\n");
        write(root, "cg/cgroup.type", b"domain\n");
        let file = |name: &str, text: String| write(root, name, text.as_bytes());
        file("proc/uptime", format!("{n}.0 0\n"));
        file("proc/stat", format!("cpu {n} {n} {n} {n} {n} {n} {n} {n}\n"));
        file("proc/meminfo", format!("MemTotal: {max} kB\nMemAvailable: {n} kB\n"));
        file("proc/net/dev", format!("eth0: {n} 0 0 0 0 0 0 0 {n} 0\neth1: {n} 0 0 0 0 0 0 0 {n} 0\n"));
        file("sys/class/infiniband/a/ports/1/counters/port_rcv_data", format!("{n}\n"));
        file("sys/class/infiniband/a/ports/1/counters/port_xmit_data", format!("{n}\n"));
        file("cg/memory.current", format!("{n}\n"));
        file("cg/memory.max", format!("{}\n", 1u64 << 62));
        file("cg/memory.stat", format!("anon {n}\ninactive_file {n}\n"));
        file("cg/memory.events", format!("max {n}\noom_kill {n}\n"));
        file("cg/cpu.max", format!("{max} 1\n"));
        file(
            "cg/cpu.stat",
            format!("usage_usec {n}\nnr_periods {n}\nnr_throttled {n}\nthrottled_usec {n}\n"),
        );
        file("cg/io.stat", format!("8:0 rbytes={n} wbytes={n}\n8:16 rbytes={n} wbytes={n}\n"));
        file("cg/memory.pressure", format!("full avg10=0 total={n}\n"));
        let process = format!("7 (x) R 1 1 1 0 -1 0 0 0 0 0 {n} {n} {n} {n} 20 0 {n} 0 5 0 {n}\n");
        file("proc/7/stat", process.clone());
        file("proc/8/stat", process.replacen('7', "8", 1));
        file("proc/7/io", format!("rchar: {n}\nwchar: {n}\n"));
        file(
            "rankscope-tree.json",
            format!(
                r#"{{"taken_unix_ms": {taken}, "clk_tck": {max}, "page_size": {max}, "statvfs": {{"/":
                {{"frsize": {max}, "blocks": {max}, "bfree": {n}, "bavail": {n}}}}}}}"#
            ),
        );
    }
    for roots in [&[t0.as_path()][..], &[&t1], &[&t0, &t1], &[&t1, &t0]] {
        check_sample(&binary("sample", roots));
        binary("scope", roots);
    }
}

#[test]
fn links_in_a_tree_never_lead_out_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    fs::create_dir_all(root.join("proc")).unwrap();
    // As if the tree were `/`, these point into the tree, where nothing is.
    symlink("/proc/meminfo", root.join("proc/meminfo")).unwrap();
    symlink("../../../../../../../../proc/stat", root.join("proc/stat")).unwrap();
    symlink("/proc/loadavg", root.join("proc/loadavg")).unwrap();
    let sample = binary("sample", &[root]);
    assert_eq!(sample["series"].as_array().unwrap().len(), 0, "{sample}");
    assert_eq!(sample["time_unix_ms"], Value::Null);
}

#[test]
fn a_root_that_is_not_there_is_said() {
    let out = Command::new(env!("CARGO_BIN_EXE_rankscope"))
        .args(["sample", "--root", "/no/such/tree"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&out.stderr).contains("/no/such/tree"));
    assert!(out.stdout.is_empty());
}
