//! What a run itself says of its last moments: no more than the latest point of each series, which every answer about a
//! run holds.

use rankscope_core::postmortem::{LIMIT, Moment, Peak, Recorded, USED};

use super::types::Run;

/// A point later than this after now was not given in milliseconds, or is not about now.
const FUTURE_MS: i64 = 86_400_000;

/// The last sign of life of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    pub unix_ms: i64,
    /// The series, or what else it was.
    pub what: String,
}

pub fn last_sign(run: &Run, now_unix_ms: i64) -> Sign {
    let newest = run
        .metrics
        .iter()
        .filter(|m| m.point.timestamp_ms <= now_unix_ms.saturating_add(FUTURE_MS))
        .max_by_key(|m| m.point.timestamp_ms);
    let start = Sign { unix_ms: run.start_time_ms.unwrap_or(0), what: "its start".to_owned() };
    match newest {
        Some(m) if m.point.timestamp_ms >= start.unix_ms => {
            Sign { unix_ms: m.point.timestamp_ms, what: m.key.clone() }
        }
        _ => start,
    }
}

/// What is known there of a rank. `None`: the run has nothing of it.
pub fn recorded(run: &Run, subject: &str) -> Option<Recorded> {
    let prefix = format!("system/{subject}/");
    let of = |series: &str| run.metrics.iter().find(|m| m.key.strip_prefix(&prefix) == Some(series));
    let newest =
        run.metrics.iter().filter(|m| m.key.starts_with(&prefix)).map(|m| m.point.timestamp_ms).max()?;
    let used = USED.into_iter().find_map(of);
    let limit = of(LIMIT).map(|m| m.point.value * 1e6);
    let last = used.map(|m| Moment {
        unix_ms: m.point.timestamp_ms,
        used: Some(m.point.value * 1e6),
        limit,
        ..Moment::default()
    });
    Some(Recorded {
        rank: subject.strip_prefix("rank_").and_then(|r| r.parse().ok()).unwrap_or(0),
        started_unix_ms: run.start_time_ms.unwrap_or(newest),
        heartbeat_unix_ms: newest,
        last_sample_unix_ms: Some(newest),
        peak: Peak { used: last.and_then(|m| m.used), limit, ..Peak::default() },
        course: last.into_iter().collect(),
        of_run: true,
        ..Recorded::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::types::{Latest, Point, RunStatus};
    use super::*;

    fn run(points: &[(&str, f64, i64)]) -> Run {
        Run {
            id: "r".into(),
            name: String::new(),
            experiment_id: "1".into(),
            status: RunStatus::Running,
            start_time_ms: Some(1000),
            end_time_ms: None,
            artifact_uri: String::new(),
            deleted: false,
            metrics: points
                .iter()
                .map(|&(key, value, timestamp_ms)| Latest {
                    key: key.into(),
                    point: Point { value, timestamp_ms, step: 1 },
                })
                .collect(),
            params: vec![],
            tags: vec![],
        }
    }

    #[test]
    fn the_newest_point_of_any_series_is_a_sign_of_life() {
        let of = |points: &[(&str, f64, i64)]| last_sign(&run(points), 10_000);
        assert_eq!(of(&[]).unix_ms, 1000);
        assert_eq!(of(&[("loss", 1.0, 0)]).what, "its start");
        let points = [("system/rank_0/process_rss_megabytes", 1.0, 5000), ("loss", 1.0, 7000)];
        assert_eq!(of(&points), Sign { unix_ms: 7000, what: "loss".to_owned() });
        assert_eq!(of(&[("in microseconds", 1.0, 1_700_000_000_000_000)]).unix_ms, 1000);
    }

    #[test]
    fn the_last_share_of_the_limit() {
        let run = run(&[
            ("system/rank_0/process_rss_megabytes", 50.0, 5000),
            ("system/rank_0/container_memory_limit_level_working_set_megabytes", 97.0, 4000),
            ("system/rank_0/container_memory_limit_megabytes", 100.0, 2000),
            ("system/rank_01/process_rss_megabytes", 1.0, 9000),
        ]);
        let found = recorded(&run, "rank_0").unwrap();
        assert_eq!((found.heartbeat_unix_ms, found.course[0].used), (5000, Some(97e6)));
        assert_eq!(found.course[0].limit, Some(100e6));
        assert_eq!(recorded(&run, "rank_1"), None);
    }
}
