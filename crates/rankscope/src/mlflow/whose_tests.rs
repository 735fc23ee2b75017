use super::super::types::{Param, Point};
use super::*;

fn run(id: &str, start: i64, tags: &[(&str, &str)]) -> Run {
    Run {
        id: id.into(),
        name: String::new(),
        experiment_id: "1".into(),
        status: RunStatus::Running,
        start_time_ms: Some(start),
        end_time_ms: None,
        artifact_uri: String::new(),
        deleted: false,
        metrics: vec![],
        params: vec![],
        tags: tags.iter().map(|(k, v)| Tag::new(k, v).unwrap()).collect(),
    }
}

fn of(id: &str, start: i64, rank: &str, more: &[(&str, &str)]) -> Run {
    let mut run = run(id, start, &[(JOB, "j"), (RANK, rank)]);
    run.tags.extend(more.iter().map(|(k, v)| Tag::new(k, v).unwrap()));
    run
}

fn who(rank: u32) -> Who {
    Who { job: "j".into(), rank, attempt_unix_ms: 1_000_000, token: Some("t".into()) }
}

fn picked(who: &Who, found: &[Run]) -> Vec<(String, How)> {
    who.pick(found).into_iter().map(|(r, how)| (r.id.clone(), how)).collect()
}

#[test]
fn the_childs_own_outermost_runs_come_first() {
    let found = [
        of("b", 1_000_300, "0", &[]),
        of("inner", 1_000_200, "0", &[("mlflow.parentRunId", "a")]),
        of("a", 1_000_100, "0", &[]),
        of("of a driver", 1_000_400, "0", &[("mlflow.parentRunId", "elsewhere")]),
        of("earlier attempt", 900_000, "0", &[]),
        of("other rank", 1_000_050, "1", &[]),
        of("ours", 1_000_000, "0", &[(CREATED, "t")]),
        run("other job", 1_000_500, &[(JOB, "k"), (RANK, "0")]),
    ];
    let expected = ["a", "b", "of a driver"].map(|id| (id.to_owned(), How::Adopted));
    assert_eq!(picked(&who(0), &found), expected);
    assert_eq!(who(0).of_own_child(&found).len(), 4);
}

#[test]
fn without_a_run_of_its_own_a_rank_uses_that_of_the_lowest() {
    let found = [
        of("two", 1_000_100, "2", &[]),
        of("zero", 999_990, "0", &[]),
        of("made", 1_000_000, "0", &[(CREATED, "x")]),
    ];
    assert_eq!(picked(&who(3), &found), [("zero".to_owned(), How::Adopted)]);
    let found = [of("made", 1_000_000, "0", &[(CREATED, "x")])];
    assert_eq!(picked(&who(3), &found), [("made".to_owned(), How::Adopted)]);
    assert!(!who(3).may_create());
}

#[test]
fn our_own_is_known_by_its_token_only() {
    let found =
        [of("x", 1_000_000, "0", &[(CREATED, "other")]), of("mine", 1_000_000, "0", &[(CREATED, "t")])];
    assert_eq!(picked(&who(0), &found), [("mine".to_owned(), How::Created)]);
    assert!(picked(&Who { token: None, ..who(0) }, &found).is_empty());
    let mut deleted = found;
    deleted[1].deleted = true;
    assert!(picked(&who(0), &deleted).is_empty());
}

fn with_points(mut run: Run, newest: &[(&str, i64)]) -> Run {
    let latest = |(key, timestamp_ms): &(&str, i64)| Latest {
        key: (*key).to_owned(),
        point: Point { value: 1.0, timestamp_ms: *timestamp_ms, step: 1 },
    };
    run.metrics.extend(newest.iter().map(latest));
    run
}

#[test]
fn of_a_run_that_is_there_twice_all_keep_the_same() {
    let made = |id: &str, start| of(id, start, "0", &[(CREATED, "t")]);
    let points = |run| with_points(run, &[("system/rank_0/x", 5)]);
    let noted = |mut run: Run| {
        run.params.push(serde_json::from_str::<Param>(r#"{"key": "lr", "value": "1"}"#).unwrap());
        run
    };
    let same = |found: &[Run], kept: &str| {
        let mut found = found.to_vec();
        for _ in 0..2 {
            assert_eq!(picked(&who(0), &found), [(kept.to_owned(), How::Created)]);
            assert_eq!(picked(&who(3), &found), [(kept.to_owned(), How::Adopted)]);
            found.reverse();
        }
    };
    same(&[made("b", 1_000_000), made("a", 1_000_000)], "a");
    same(&[made("b", 999_999), made("a", 1_000_000)], "b");
    same(&[points(made("b", 1_000_000)), made("a", 1_000_000)], "b");
    same(&[points(made("b", 1_000_000)), points(made("a", 1_000_000))], "a");
    same(&[points(made("b", 1_000_000)), points(made("a", 1_000_000)), noted(made("c", 1_000_000))], "c");
    // Two attempts are two runs.
    let attempts = [made("b", 1_000_000), of("a", 1_000_500, "0", &[(CREATED, "later")])];
    assert_eq!(picked(&who(3), &attempts).len(), 2);
    assert_eq!(picked(&who(0), &attempts), [("b".to_owned(), How::Created)]);
}

#[test]
fn what_only_the_other_run_has_is_not_covered() {
    let made = |newest: &[(&str, i64)]| with_points(of("r", 0, "0", &[(CREATED, "t")]), newest);
    let kept = made(&[("system/rank_0/x", 5), ("system/rank_1/x", 7)]);
    assert!(covers(&kept, &made(&[])) && covers(&kept, &kept));
    assert!(covers(&kept, &made(&[("system/rank_0/x", 4), ("system/job/ranks", 9)])));
    assert!(!covers(&kept, &made(&[("system/rank_0/x", 6)])), "not yet delivered again");
    assert!(!covers(&kept, &made(&[("system/rank_2/x", 1)])), "of a rank that has not followed");
    let failed = of("r", 0, "0", &[("rankscope.failed.rank_2", "{}"), ("rankscope.exit.rank", "0")]);
    assert!(!covers(&kept, &failed) && covers(&failed, &failed));
}

#[test]
fn every_window_goes_somewhere() {
    let life = |start_ms, end_ms| Life { start_ms, end_ms };
    let lives = [life(100, Some(200)), life(300, Some(310)), life(312, None)];
    let who = |window| (0..3).filter(|at| gets(&lives, *at, window)).collect::<Vec<_>>();
    assert_eq!(who((0, 50)), [0], "before the first run");
    assert_eq!(who((90, 110)), [0]);
    assert_eq!(who((200, 210)), [0], "between two runs");
    assert_eq!(who((300, 320)), [1, 2], "two runs in one window");
    assert_eq!(who((400, 410)), [2]);
    assert_eq!(who((50, 100)), [0]);
    let over = [life(100, Some(200)), life(300, Some(310))];
    assert!(gets(&over, 1, (500, 510)) && !gets(&over, 0, (500, 510)), "after the last");
}

#[test]
fn searches_get_rarer() {
    let mut cadence = Cadence::new(Duration::from_secs(10), 0, 512);
    let waits: Vec<u64> = (0..8).map(|_| cadence.after(false, false).as_secs()).collect();
    assert_eq!(waits, [15, 22, 33, 50, 60, 60, 60, 60]);
    assert_eq!(cadence.after(true, true).as_secs(), 10);
    let mut follows = Cadence::new(Duration::from_secs(10), 1, 512);
    assert_eq!(follows.after(false, false).as_secs(), 15);
    let waits: Vec<u64> = (0..5).map(|n| follows.after(n == 0, true).as_secs()).collect();
    assert_eq!(waits, [1280, 1920, 2880, 4320, 5120], "with a run to write to there is no hurry");
    assert_eq!(Cadence::new(Duration::from_secs(10), 1, 2).after(true, true).as_secs(), 10);
}

#[test]
fn status() {
    use RunStatus::*;
    assert!(status_after_failure(Running, None) && status_after_failure(Finished, None));
    assert!(status_after_failure(Killed, Some(Reason::Terminated)), "told by rank 0 of a job that was ended");
    assert!(!status_after_failure(Killed, None) && !status_after_failure(Failed, None));
    assert_eq!(status_after(Running, Finished, true), Some(Finished));
    assert_eq!(status_after(Running, Failed, false), Some(Failed));
    assert_eq!(status_after(Running, Killed, true), Some(Killed));
    assert_eq!(status_after(Finished, Failed, true), Some(Failed));
    assert_eq!(status_after(Finished, Failed, false), None);
    assert_eq!(status_after(Finished, Finished, true), None);
    for set in [Failed, Killed] {
        assert_eq!(status_after(set, Finished, true), None);
    }
}

#[test]
fn foreign_content() {
    assert!(!has_foreign_content(&of("r", 0, "0", &[(CREATED, "t"), ("mlflow.user", "me")])));
    assert!(has_foreign_content(&of("r", 0, "0", &[("team", "x")])));
    assert!(has_foreign_content(&of("r", 0, "0", &[("mlflow.note.content", "look at this")])));
    assert!(has_foreign_content(&with_points(of("r", 0, "0", &[]), &[("loss", 1)])));
    assert!(!has_foreign_content(&with_points(of("r", 0, "0", &[]), &[("system/rank_0/x", 1)])));
}
