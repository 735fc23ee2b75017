//! What was gathered → `Report`.

use super::track::{self, Track};
use super::{
    Band, Gone, Mark, Measured, Metric, Rank, Report, Run, Slow, Spent, Tone, Verdict, charts, phases, sizing,
};
use crate::ending::Reason;
use crate::postmortem::{Postmortem, Recorded, duration, examine};

/// Points of one metric of the training.
const POINTS: usize = 600;

/// What a command has read, of records or of a run on a server.
#[derive(Clone, Debug, Default)]
pub struct Material {
    pub run: Option<Run>,
    pub job: String,
    pub source: String,
    pub version: String,
    pub recorded: Vec<Recorded>,
    pub slow: Option<Slow>,
    pub ranks: Vec<Rank>,
    pub tracks: Vec<Track>,
    pub marks: Vec<Mark>,
    pub bands: Vec<Band>,
    pub spent: Vec<Spent>,
    pub training: Vec<Metric>,
    pub measured: Vec<Measured>,
    pub missing: Vec<Gone>,
    pub remarks: Vec<String>,
}

/// `None`: nothing was recorded.
pub fn make(mut from: Material) -> Option<Report> {
    let sizing = sizing::size(&from.recorded, &from.tracks);
    let title = from.recorded.iter().map(|r| r.program.clone()).find(|name| !name.is_empty());
    let started = from.recorded.iter().map(|r| r.started_unix_ms).filter(|at| *at > 0).min()?;
    let ends =
        from.recorded.iter().map(|r| r.ending.as_ref().map_or(r.heartbeat_unix_ms, |e| e.ended_unix_ms));
    let last = from.tracks.iter().filter_map(|t| t.times.last().copied()).chain(ends).max()?;
    let ended = last.max(started + 1);
    let verdict = verdict(examine(from.recorded)?);
    from.tracks.iter_mut().for_each(track::derive);
    track::share(&mut from.tracks);
    from.ranks.sort_by_key(|rank| rank.id);
    from.marks.sort_by_key(|mark| mark.unix_ms);
    Some(Report {
        title: title.unwrap_or_else(|| from.run.as_ref().map(|run| run.name.clone()).unwrap_or_default()),
        job: from.job,
        run: from.run,
        source: from.source,
        version: from.version,
        verdict,
        slow: from.slow,
        since: "started_at",
        facts: vec![("fact_duration", duration(ended - started))],
        started_unix_ms: started,
        ended_unix_ms: ended,
        focus_unix_ms: None,
        charts: charts::charts(&from.tracks),
        ranks: from.ranks,
        tracks: from.tracks,
        marks: from.marks,
        bands: from.bands,
        spent: phases::share(from.spent),
        training: from.training.into_iter().map(thin).collect(),
        sizing: sizing.into_iter().collect(),
        measured: from.measured,
        missing: from.missing,
        tables: Vec::new(),
        remarks: from.remarks,
    })
}

pub fn verdict(found: Postmortem) -> Verdict {
    let reason = found.ending.as_ref().map(|ending| ending.reason);
    let facts = found.ending.into_iter().flat_map(|ending| ending.evidence);
    Verdict {
        tone: match reason {
            Some(Reason::Completed) => Tone::Good,
            None | Some(Reason::Terminated) => Tone::Open,
            Some(_) => Tone::Bad,
        },
        reason,
        badge: None,
        sentence: found.verdict,
        enough: found.enough,
        advice: found.advice,
        timeline: found.timeline,
        evidence: facts.map(|fact| [fact.what, fact.value, fact.source]).collect(),
        followers: found.followers,
    }
}

/// Of each stretch its first, lowest, highest and last point: the drawn line looks as if all were there.
fn thin(metric: Metric) -> Metric {
    let length = metric.points.len().div_ceil(POINTS / 4).max(1);
    if metric.points.len() <= POINTS {
        return metric;
    }
    let mut points = Vec::new();
    for chunk in metric.points.chunks(length) {
        let by_value = |a: &&(i64, f64, i64), b: &&(i64, f64, i64)| a.1.total_cmp(&b.1);
        let finite = || chunk.iter().filter(|p| p.1.is_finite());
        let picked = [chunk.first(), finite().min_by(by_value), finite().max_by(by_value), chunk.last()];
        let mut picked: Vec<(i64, f64, i64)> = picked.into_iter().flatten().copied().collect();
        picked.sort_by_key(|p| (p.0, p.2));
        picked.dedup_by(|a, b| a.0 == b.0 && a.2 == b.2 && a.1.total_cmp(&b.1).is_eq());
        points.extend(picked);
    }
    Metric { points, ..metric }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_metric_keeps_its_spike() {
        let value = |n: i64| if n == 7777 { 100.0 } else { (n % 10) as f64 };
        let points = (0..20_000).map(|n| (n * 1000, value(n), n)).collect();
        let thin = thin(Metric { name: "loss".to_owned(), points });
        assert!(thin.points.len() <= POINTS + 4, "{}", thin.points.len());
        assert!(thin.points.contains(&(7_777_000, 100.0, 7777)));
        assert_eq!((thin.points[0].2, thin.points[thin.points.len() - 1].2), (0, 19_999));
    }
}
