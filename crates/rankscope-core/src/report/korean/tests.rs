//! Everything that the core says in English has its Korean: a sentence that was changed is found here.

use super::*;
use crate::ending::{Asked, Evidence, Exit, LevelOoms, OomCounts, OomKills, Reason, Traceback, decide};
use crate::postmortem::{Moment, Peak, Program, Recorded, Snapshot, examine};
use crate::series::ALL as SERIES;

const GIB: f64 = 1073741824.0;

/// What is left of a sentence when names, paths and numbers are taken away; nothing of it may be English.
#[track_caller]
fn told(english: &str) -> String {
    let korean = korean(english).unwrap_or_else(|| panic!("no Korean for: {english}"));
    let has_hangul = korean.chars().any(|c| ('가'..='힣').contains(&c));
    assert!(has_hangul || !english.contains(' '), "{korean}");
    assert!(!korean.contains(['{', '}']), "{korean}");
    korean
}

fn holes(form: &str) -> Vec<&str> {
    let holes = form.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let mut names: Vec<&str> = holes.map(|(hole, _)| hole.split(':').next().unwrap_or(hole)).collect();
    names.sort_unstable();
    names
}

#[test]
fn both_languages_have_the_same_holes_and_no_form_is_there_twice() {
    let mut seen = std::collections::BTreeSet::new();
    for [english, korean] in ALL.iter().flat_map(|pairs| pairs.iter()) {
        assert_eq!(holes(english), holes(korean), "{english}");
        assert!(seen.insert(english), "{english} twice");
    }
}

#[test]
fn all_that_the_table_of_series_says() {
    for series in SERIES {
        told(series.about);
        series.not.into_iter().for_each(|not| drop(told(not)));
    }
}

fn counts(kills: Option<u64>, ooms: Option<u64>, level: &str) -> OomCounts {
    let of = |level: &str| LevelOoms {
        level: level.into(),
        ooms,
        hits: Some(if level == "/" { 1 } else { 3412 }),
        source: "memory.events".into(),
        binds: true,
    };
    OomCounts {
        kills,
        why_not: kills
            .is_none()
            .then(|| "memory.oom_control: this kernel has no OOM counter (Linux 4.13)".to_owned()),
        own_kills: kills.map(|_| 0),
        last_kill_unix_ms: Some(99_000),
        levels: vec![of(level)],
        node_available_percentage: Some(1.0),
        node_kills: Some(2),
        ..OomCounts::default()
    }
}

fn endings() -> Vec<Evidence> {
    let exits = [
        Exit::Code(0),
        Exit::Code(1),
        Exit::Code(137),
        Exit::Code(170),
        Exit::Code(247),
        Exit::Signal { signal: 9, core_dumped: false },
        Exit::Signal { signal: 7, core_dumped: true },
        Exit::Signal { signal: 40, core_dumped: false },
        Exit::Hidden,
        Exit::Unseen,
    ];
    let oom = [
        OomCounts::default(),
        counts(Some(0), Some(0), "/kubepods/pod1"),
        counts(Some(1), Some(1), "/kubepods/pod1"),
        counts(Some(3), Some(3), "/"),
        counts(Some(2), Some(0), "/a"),
        OomCounts {
            own_kills: None,
            node_available_percentage: Some(60.0),
            ..counts(Some(2), Some(0), "/a")
        },
        counts(None, None, "/"),
    ];
    let asked = |sender, name: Option<&str>, limit: Option<&str>| Asked {
        signal: 15,
        unix_ms: 98_500,
        sender,
        sender_name: name.map(str::to_owned),
        time_limit: limit.map(str::to_owned),
    };
    let asked = [
        None,
        Some(asked(None, None, None)),
        Some(asked(Some(1), None, None)),
        Some(asked(Some(1), Some("slurm stepd"), None)),
        Some(asked(None, None, Some("Slurm"))),
    ];
    let traceback = |text: &str| Traceback::last_in(text, "--tee");
    let torch = "Traceback (most recent call last):\n  File \"/a/t.py\", line 12, in main\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. x\n";
    let tracebacks = [
        None,
        traceback(
            "Traceback (most recent call last):\n  File \"/a/t.py\", line 12, in main\nValueError: x\n",
        ),
        traceback("Traceback (most recent call last):\nValueError: x\n"),
        traceback(torch),
        traceback("Traceback (most recent call last):\njaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: x\n"),
    ];
    let mut all = Vec::new();
    for exit in exits {
        let seen =
            || Evidence { exit, ended_unix_ms: 100_000, shm_percentage: Some(99.5), ..Evidence::default() };
        all.extend(oom.iter().map(|oom| Evidence { oom: oom.clone(), ..seen() }));
        all.extend(asked.iter().map(|asked| Evidence { asked: asked.clone(), ..seen() }));
        all.extend(tracebacks.iter().map(|traceback| Evidence { traceback: traceback.clone(), ..seen() }));
    }
    all
}

#[test]
fn all_that_is_said_of_an_end() {
    let mut reasons = std::collections::BTreeSet::new();
    for seen in endings() {
        let ending = decide(&seen);
        reasons.insert(ending.reason.as_str());
        told(&ending.detail);
        for fact in &ending.evidence {
            told(&fact.what);
            // Of a traceback only names are left.
            let is_number = !fact.value.contains(char::is_alphabetic);
            assert!(is_number || korean(&fact.value).is_some(), "{}", fact.value);
        }
        ending.warnings.iter().for_each(|warning| drop(told(warning)));
        for ranks in [1, 2] {
            postmortem((0..ranks).map(|rank| of(rank, Some(ending.clone()), None)).collect());
        }
    }
    assert_eq!(reasons.len(), 9, "{reasons:?}");
}

/// Ten minutes in which memory of one kind grows. `workers`: a program that grows with it.
fn of(rank: u32, ending: Option<crate::ending::Ending>, workers: Option<u64>) -> Recorded {
    let used = |s: i64| (44.0 + s as f64 / 30.0) * GIB;
    let moment = |s: i64| Moment {
        unix_ms: s * 1000,
        used: Some(used(s)),
        limit: Some(64.0 * GIB),
        anon: Some(used(s) - GIB),
        shmem: Some(0.5 * GIB),
        file: Some(GIB),
    };
    let look = |s: i64| Snapshot {
        unix_ms: s * 1000,
        programs: workers
            .into_iter()
            .flat_map(|count| {
                let worker = Program { name: "w 1".into(), count, anon: used(s), ..Program::default() };
                [worker, Program { name: "python".into(), count: 1, anon: 29.0 * GIB, ..Program::default() }]
            })
            .collect(),
    };
    Recorded {
        rank,
        heartbeat_unix_ms: 600_000,
        last_sample_unix_ms: Some(599_900),
        ending,
        course: (0..=600).step_by(20).map(moment).collect(),
        peak: Peak {
            used: Some(40.0 * GIB),
            limit: Some(64.0 * GIB),
            level: Some("/kubepods/pod1".into()),
            kernel: None,
        },
        programs: vec![look(0), look(300), look(580)],
        source: "rank_00.sqlite".into(),
        ..Recorded::default()
    }
}

fn postmortem(ranks: Vec<Recorded>) {
    let found = examine(ranks).unwrap();
    told(&found.verdict);
    found.enough.iter().chain(&found.advice).for_each(|words| drop(told(words)));
    found.timeline.iter().for_each(|entry| drop(told(&entry.words)));
    found.followers.iter().for_each(|follower| drop(told(&follower.detail)));
    for fact in found.ending.iter().flat_map(|ending| &ending.evidence) {
        told(&fact.what);
    }
}

#[test]
fn all_that_a_postmortem_says_without_an_end_or_of_memory() {
    let alive = Recorded { is_alive: true, ..of(0, None, None) };
    let unwatched = Recorded { unwatched: true, ..of(0, None, None) };
    let rebooted = Recorded { node_rebooted: true, oom_group: Some(true), ..of(3, None, None) };
    let remote = Recorded { of_run: true, course: Vec::new(), ..of(0, None, None) };
    let spike = |ranks: &mut Recorded| ranks.course.iter_mut().for_each(|m| m.used = Some(20.0 * GIB));
    let killed = |level: &str, workers, kind: fn(&mut Moment)| {
        let mut ending = decide(&Evidence { ended_unix_ms: 600_000, ..Evidence::default() });
        ending.reason = Reason::OomKilled;
        ending.oom_kills = OomKills { processes: Some(1), level: Some(level.to_owned()) };
        let mut rank = of(0, Some(ending), workers);
        rank.course.iter_mut().for_each(kind);
        rank
    };
    let shmem = |m: &mut Moment| std::mem::swap(&mut m.anon, &mut m.shmem);
    let file = |m: &mut Moment| std::mem::swap(&mut m.anon, &mut m.file);
    let mut calm = killed("/kubepods/pod1", None, |_| ());
    spike(&mut calm);
    for rank in [alive, unwatched, rebooted, remote, of(0, None, None), calm] {
        postmortem(vec![rank]);
    }
    for level in ["/", "/a", "/kubepods/pod1", "node", "not_visible"] {
        for workers in [None, Some(1), Some(16)] {
            [|_: &mut Moment| (), shmem, file]
                .into_iter()
                .for_each(|kind| postmortem(vec![killed(level, workers, kind)]));
        }
    }
}

#[test]
fn a_sentence_in_korean_says_what_the_english_one_says() {
    let english = "OOM-killed at 14:10:00 UTC: /kubepods/pod1 reached its limit of 64.0 GiB; `pt_data_worker` ×16 grew 2.00 GiB a minute in shmem; `python` stayed at 29.0 GiB; 1 process was killed";
    assert_eq!(
        told(english),
        "14:10:00 UTC에 메모리 부족(OOM)으로 강제 종료되었습니다. /kubepods/pod1의 메모리가 한도 64.0 GiB에 도달했습니다. \
         `pt_data_worker` 프로세스 16개의 shmem 메모리가 분당 2.00 GiB 늘었습니다. `python` 프로세스는 29.0 GiB를 유지했습니다. \
         프로세스 1개가 강제 종료되었습니다"
    );
}

#[test]
fn what_is_not_known_or_too_long_stays_as_it_is() {
    assert_eq!(korean("a sentence that nobody here says"), None);
    assert_eq!(korean("completed at 10:00:00 UTC: a sentence that nobody here says"), None);
    assert_eq!(korean(&"killed by a signal; ".repeat(1000)), None);
    assert_eq!(
        korean("killed by {signal}").as_deref(),
        Some("{signal}로 종료되었습니다"),
        "a name of another is no hole"
    );
}
