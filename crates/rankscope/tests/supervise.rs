//! What `supervise` hands back to its caller, with real processes. What the job itself sees is tested from outside,
//! on the binary (tests/test_supervise.py).
//!
//! No harness: this needs the main thread, and children that nobody else waits for.

use std::ffi::OsString;
use std::fs;
use std::time::{Duration, SystemTime};

use rankscope::supervise::{self, Ended, ExitKind};

#[expect(clippy::print_stdout, reason = "the progress that a harness would show")]
fn main() {
    supervise::prepare();
    supervise::become_subreaper().expect("Linux has subreapers since 3.4");
    for (name, case) in CASES {
        case();
        println!("{name} ... ok");
    }
}

const CASES: &[(&str, fn())] = &[
    ("the_last_sample_sees_a_zombie_once", the_last_sample_sees_a_zombie_once),
    ("the_end_is_told_exactly", the_end_is_told_exactly),
    ("signals_are_told_with_their_time", signals_are_told_with_their_time),
    ("a_signal_that_we_take_after_the_end_is_told", a_signal_that_we_take_after_the_end_is_told),
    ("the_list_of_signals_is_bounded", the_list_of_signals_is_bounded),
    ("orphans_are_counted", orphans_are_counted),
    ("cpu_time_is_counted", cpu_time_is_counted),
    ("a_failed_start_leaves_nothing_behind", a_failed_start_leaves_nothing_behind),
];

fn run(script: &str) -> Ended {
    supervise::start(&words(&["sh", "-c", script]), &[], None).expect("sh starts").wait(|| ())
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn the_last_sample_sees_a_zombie_once() {
    let job = supervise::start(&words(&["sh", "-c", "exit 3"]), &[], None).expect("sh starts");
    let stat = format!("/proc/{}/stat", job.pid());
    let mut seen = Vec::new();
    let ended = job.wait(|| seen.push(fs::read_to_string(&stat).expect("the job is still in /proc")));
    assert_eq!(seen.len(), 1);
    assert!(seen[0].contains(") Z "), "{}", seen[0]);
    assert!(!fs::exists(&stat).expect("/proc is readable"), "and it is reaped afterwards");
    assert_eq!(ended.exit_code(), 3);
}

fn the_end_is_told_exactly() {
    assert_eq!(run("exit 255").status, ExitKind::Exited(255));
    let killed = run("ulimit -c 0; kill -QUIT $$");
    assert_eq!(killed.status, ExitKind::Signaled { signal: libc::SIGQUIT, core_dumped: false });
    assert_eq!(killed.exit_code(), 131);
}

fn signals_are_told_with_their_time() {
    let before = SystemTime::now();
    // From another process than the job: what the job sends is not sent back to it.
    let ended = run("trap 'exit 4' TERM; (kill -TERM $PPID) & wait; while :; do sleep 0.01; done");
    assert_eq!(ended.exit_code(), 4);
    let [term] = &ended.signals[..] else { panic!("one signal: {:?}", ended.signals) };
    assert_eq!((term.signal, term.forwarded), (libc::SIGTERM, true));
    assert!((before..=SystemTime::now()).contains(&term.at));

    let ended = run("trap '' TERM; kill -TERM $PPID; sleep 0.1");
    assert!(ended.signals.iter().all(|seen| !seen.forwarded), "{:?}", ended.signals);
    assert!(run("exit 0").signals.is_empty(), "nothing is left from the job before");
}

fn a_signal_that_we_take_after_the_end_is_told() {
    let job = supervise::start(&words(&["true"]), &[], None).expect("true starts");
    let stat = format!("/proc/{}/stat", job.pid());
    while !fs::read_to_string(&stat).expect("the job is still in /proc").contains(") Z ") {
        std::thread::yield_now();
    }
    // SAFETY: to ourselves, and blocked by `prepare`.
    unsafe { libc::kill(libc::getpid(), libc::SIGINT) };
    let ended = job.wait(|| ());
    let told: Vec<_> = ended.signals.iter().map(|seen| (seen.signal, seen.forwarded)).collect();
    assert_eq!(told, [(libc::SIGINT, false)]);
}

fn the_list_of_signals_is_bounded() {
    let ended = run("trap '' USR1; for i in $(seq 300); do (kill -USR1 $PPID); done");
    assert!((1..=64).contains(&ended.signals.len()), "{}", ended.signals.len());
}

fn orphans_are_counted() {
    // Each orphan ends only after it has become ours; the job ends after the last one.
    let ended = run("for i in 1 2 3; do (sleep 0.05 & ); done; sleep 0.5");
    assert_eq!(ended.reaped_orphans, 3);
}

fn cpu_time_is_counted() {
    let before = run("exit 0").children_cpu;
    let after = run("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done").children_cpu;
    assert!(after.user > before.user, "{before:?} {after:?}");
    assert!(after.user + after.system < Duration::from_secs(600));
}

fn a_failed_start_leaves_nothing_behind() {
    let open = || fs::read_dir("/proc/self/fd").expect("/proc is readable").count();
    let before = open();
    for _ in 0..3 {
        let error =
            supervise::start(&words(&["no-such-command-here"]), &[], None).err().expect("it does not start");
        assert_eq!(error.code, 127);
    }
    assert_eq!(supervise::start(&[], &[], None).err().map(|error| error.code), Some(2));
    assert_eq!(open(), before);
    let pid = std::process::id();
    assert_eq!(
        fs::read_to_string(format!("/proc/self/task/{pid}/children")).expect("CONFIG_PROC_CHILDREN"),
        ""
    );
}
