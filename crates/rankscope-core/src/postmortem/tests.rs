use super::*;
use crate::ending::{Evidence, Exit, LevelOoms, OomCounts, decide};

const GIB: f64 = 1073741824.0;
/// 2026-01-01 14:00:00 UTC.
const START: i64 = 1_767_276_000_000;

fn oom_end(at: i64) -> Ending {
    let level = LevelOoms {
        level: "/kubepods/pod1".into(),
        ooms: Some(1),
        hits: Some(40),
        source: "memory.events".into(),
        binds: true,
    };
    let oom = OomCounts {
        kills: Some(1),
        last_kill_unix_ms: Some(at),
        levels: vec![level],
        ..OomCounts::default()
    };
    let exit = Exit::Signal { signal: 9, core_dumped: false };
    decide(&Evidence { exit, ended_unix_ms: at, oom, ..Evidence::default() })
}

fn exit_end(code: i32, at: i64) -> Ending {
    let oom = OomCounts { kills: Some(0), ..OomCounts::default() };
    decide(&Evidence { exit: Exit::Code(code), ended_unix_ms: at, oom, ..Evidence::default() })
}

/// Ten minutes in which shared memory grows by 2 GiB a minute up to the limit of 64.
fn climbing(ending: Option<Ending>) -> Recorded {
    let moment = |s: i64| Moment {
        unix_ms: START + s * 1000,
        used: Some((44.0 + s as f64 / 30.0) * GIB),
        limit: Some(64.0 * GIB),
        anon: Some(30.0 * GIB),
        shmem: Some((14.0 + s as f64 / 30.0) * GIB),
        file: Some(GIB),
    };
    let program =
        |name: &str, count, anon, shmem| Program { name: name.into(), count, anon, shmem, file: 0.0 };
    let look = |s: i64| Snapshot {
        unix_ms: START + s * 1000,
        programs: vec![
            program("pt_data_worker", 16, GIB, (14.0 + s as f64 / 30.0) * GIB),
            program("python", 1, 29.0 * GIB, 0.0),
        ],
    };
    Recorded {
        started_unix_ms: START,
        heartbeat_unix_ms: START + 600_000,
        last_sample_unix_ms: Some(START + 599_900),
        ending,
        course: (0..=599).map(moment).collect(),
        peak: Peak {
            used: Some(64.0 * GIB),
            limit: Some(64.0 * GIB),
            level: Some("/kubepods/pod1".into()),
            kernel: Some(64.0 * GIB),
        },
        programs: vec![look(0), look(300), look(590)],
        source: "rank_00.sqlite".into(),
        ..Recorded::default()
    }
}

#[test]
fn an_oom_kill_names_the_level_and_who_grew() {
    let found = examine(vec![climbing(Some(oom_end(START + 600_000)))]).unwrap();
    assert_eq!(
        found.verdict,
        "OOM-killed at 14:10:00 UTC: /kubepods/pod1 reached its limit of 64.0 GiB; `pt_data_worker` ×16 grew 2.00 GiB a \
         minute in shmem; `python` stayed at 29.0 GiB; 1 process was killed"
    );
    assert_eq!(found.last_sample_before_end_ms, Some(100));
    assert!(found.enough.unwrap().contains("no limit would have been enough"));
    assert!(found.advice[0].contains("prefetch_factor"), "{:?}", found.advice);
    let words: Vec<&str> = found.timeline.iter().map(|e| e.words.as_str()).collect();
    assert!(
        words[0] == "started"
            && words.iter().any(|w| w.starts_with("95 % of the limit: 60.8 GiB of 64.0 GiB"))
    );
    assert_eq!(words.last(), Some(&"end: oom_killed"));
}

#[test]
fn a_program_is_blamed_only_where_the_container_bears_it_out() {
    let mut forked = climbing(Some(oom_end(START + 600_000)));
    // Sixteen children of one process: its pages count in each, and nothing was gained by that.
    let python = |count, each: f64| Program {
        name: "python".into(),
        count,
        anon: count as f64 * each * GIB,
        shmem: 0.0,
        file: 0.0,
    };
    let look = |s: i64, program| Snapshot { unix_ms: START + s * 1000, programs: vec![program] };
    forked.programs = vec![look(0, python(1, 2.0)), look(300, python(17, 2.0)), look(590, python(17, 2.1))];
    // What one took at its start is no growth at the end.
    let started = Program { name: "main".into(), count: 1, anon: 3.0 * GIB, ..Program::default() };
    forked.programs[0].programs.push(Program { anon: 0.0, ..started.clone() });
    forked.programs[1].programs.push(started.clone());
    forked.programs[2].programs.push(started);
    let verdict = examine(vec![forked]).unwrap().verdict;
    assert!(
        verdict.contains("shmem (files in /dev/shm and shared mappings) grew 2.00 GiB a minute"),
        "{verdict}"
    );
    assert!(!verdict.contains("python") && !verdict.contains("main"), "{verdict}");

    // One that maps what others map too gained no more than the container did.
    let mut shared = climbing(Some(oom_end(START + 600_000)));
    let worker = |s: i64| Program {
        name: "w".into(),
        count: 8,
        anon: 0.0,
        shmem: 8.0 * s as f64 / 30.0 * GIB,
        file: 0.0,
    };
    shared.programs = vec![look(0, worker(0)), look(590, worker(590))];
    let verdict = examine(vec![shared]).unwrap().verdict;
    assert!(verdict.contains("`w` ×8 grew 2.00 GiB a minute in shmem"), "{verdict}");
}

#[test]
fn what_nobody_saw_is_lost_and_nothing_is_claimed() {
    let found = examine(vec![climbing(None)]).unwrap();
    let ending = found.ending.unwrap();
    assert_eq!((ending.reason, ending.oom), (Reason::Lost, crate::ending::Oom::CannotTell));
    assert!(found.verdict.contains("would look like this, and can't be proven"), "{}", found.verdict);
    assert!(ending.exit_code.is_none() && ending.signal.is_none());

    let mut calm = climbing(None);
    calm.course.iter_mut().for_each(|m| m.used = Some(GIB));
    let found = examine(vec![calm.clone()]).unwrap();
    assert!(!found.verdict.contains("OOM"), "{}", found.verdict);
    let rebooted = examine(vec![Recorded { node_rebooted: true, ..climbing(None) }]).unwrap();
    assert!(rebooted.verdict.contains("started anew") && !rebooted.verdict.contains("OOM"));
    let alive = examine(vec![Recorded { is_alive: true, ..calm }]).unwrap();
    assert!(alive.ending.is_none() && alive.verdict.contains("still running"));
}

#[test]
fn the_first_failure_is_told_and_the_others_follow() {
    let of = |rank, ending| Recorded { rank, ending: Some(ending), ..Recorded::default() };
    let ranks = vec![
        of(0, exit_end(1, START + 9_000)),
        of(1, exit_end(0, START + 1_000)),
        of(6, exit_end(3, START + 4_000)),
        of(7, exit_end(1, START + 5_000)),
    ];
    let found = examine(ranks).unwrap();
    assert_eq!(found.rank, 6);
    assert!(found.verdict.starts_with("rank 6: failed at 14:00:04 UTC: exit code 3"), "{}", found.verdict);
    assert_eq!(found.followers.iter().map(|f| f.rank).collect::<Vec<_>>(), [7, 0]);
    assert!(examine(vec![]).is_none());
}

#[test]
fn enough_after_an_ordinary_end() {
    let mut rank = climbing(Some(exit_end(1, START + 600_000)));
    rank.peak.used = Some(40.0 * GIB);
    let found = examine(vec![rank.clone()]).unwrap();
    assert_eq!(
        found.enough.as_deref(),
        Some("memory was not short: peak 40.0 GiB of 64.0 GiB; 46.0 GiB would do (15 % above the peak)")
    );
    rank.peak = Peak::default();
    assert_eq!(examine(vec![rank]).unwrap().enough, None);
    // A spike, not a climb.
    let mut spike = climbing(Some(oom_end(START + 600_000)));
    spike.course.iter_mut().for_each(|m| m.used = Some(20.0 * GIB));
    assert!(examine(vec![spike]).unwrap().enough.unwrap().starts_with("at least 80.0 GiB"));
}

#[test]
fn growth_needs_a_steady_course() {
    let line: Vec<(i64, f64)> = (0..100).map(|s| (s * 1000, s as f64 * 10.0)).collect();
    assert!((growth(&line).unwrap().per_minute - 600.0).abs() < 1e-6);
    let saw: Vec<(i64, f64)> = (0..100).map(|s| (s * 1000, (s % 7) as f64)).collect();
    assert!(growth(&saw).is_none() && growth(&line[..3]).is_none());
}
