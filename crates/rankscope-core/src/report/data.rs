//! `Report` → the JSON that the charts are drawn from: short names, numbers of five digits, and nothing twice.

use std::collections::{BTreeMap, BTreeSet};

use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::{Value as Json, json};

use super::causes::CAUSES;
use super::korean::korean;
use super::phases::shares;
use super::track::{Line, Track, Value};
use super::words::WORDS;
use super::{Report, charts};
use crate::clean::clean;
use crate::series::{self, Kind};

#[derive(serde::Serialize)]
struct Data<'a> {
    span: [i64; 2],
    focus: Option<i64>,
    ranks: Vec<Json>,
    tracks: Vec<OneTrack<'a>>,
    charts: Vec<Json>,
    marks: Vec<Json>,
    lanes: Vec<Json>,
    training: Vec<OneMetric>,
    /// Of places in `texts`, but for the ranks.
    measured: Vec<Json>,
    missing: Vec<Json>,
    about: BTreeMap<&'a str, Json>,
    words: BTreeMap<&'static str, [&'static str; 2]>,
    texts: Vec<String>,
    /// Sentences that are English in all of the above, and in the page.
    korean: BTreeMap<String, String>,
}

#[derive(serde::Serialize)]
struct OneTrack<'a> {
    node: String,
    ranks: &'a [u32],
    /// The first time, then what is between each and the one before.
    times: Vec<i64>,
    /// Until when, and how long a bucket is.
    pieces: Vec<[i64; 2]>,
    tiers: Vec<(&'static str, i64, i64)>,
    lines: Vec<OneLine<'a>>,
    elsewhere: &'a BTreeMap<String, usize>,
}

/// Without `low` and `high` where all values of a bucket are the same; a single `value` where they always are.
#[derive(serde::Serialize)]
struct OneLine<'a> {
    series: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Numbers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<Numbers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<Numbers>,
}

#[derive(serde::Serialize)]
struct OneMetric {
    name: String,
    times: Vec<i64>,
    values: Numbers,
    steps: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq)]
struct Number(f64);

impl Number {
    /// Five digits: a picture shows three.
    fn of(value: f64) -> Number {
        Number(format!("{value:.4e}").parse().unwrap_or(value))
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            v if v.fract() == 0.0 && v.abs() < 1e15 => to.serialize_i64(v as i64),
            v => to.serialize_f64(v),
        }
    }
}

#[derive(PartialEq)]
struct Numbers(Vec<Option<Number>>);

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut seq = to.serialize_seq(Some(self.0.len()))?;
        for number in &self.0 {
            seq.serialize_element(number)?;
        }
        seq.end()
    }
}

pub fn json(report: &Report) -> String {
    let named: BTreeSet<&str> = report
        .measured
        .iter()
        .map(|m| m.series.as_str())
        .chain(report.missing.iter().map(|m| m.series.as_str()))
        .collect();
    let mut texts = Texts::default();
    let data = Data {
        span: [report.started_unix_ms, report.ended_unix_ms],
        focus: report.focus_unix_ms,
        ranks: report.ranks.iter().map(|rank| {
            json!({ "id": rank.id, "track": rank.track, "node": clean(&rank.node), "start": rank.started_unix_ms,
                "end": rank.ended_unix_ms, "reason": rank.reason })
        }).collect(),
        tracks: report.tracks.iter().map(track).collect(),
        charts: report.charts.iter().map(chart).collect(),
        marks: report.marks.iter().map(|m| json!([m.unix_ms, m.kind.as_str(), m.rank, clean(&m.words)])).collect(),
        lanes: lanes(report),
        training: report.training.iter().map(|m| OneMetric {
            name: clean(&m.name),
            times: m.points.iter().map(|p| p.0).collect(),
            values: Numbers(m.points.iter().map(|p| Some(p.1).filter(|v| v.is_finite()).map(Number::of)).collect()),
            steps: m.points.iter().map(|p| p.2).collect(),
        }).collect(),
        measured: measured(report, &mut texts),
        missing: report.missing.iter().map(|m| {
            json!({ "series": clean(&m.series), "ranks": m.ranks, "reason": clean(&m.reason), "detail": clean(&m.detail) })
        }).collect(),
        about: named.into_iter().filter_map(|name| {
            let row = series::by_name(name)?;
            Some((name, json!([row.unit, row.about, row.not])))
        }).collect(),
        texts: texts.all,
        korean: sentences(report),
        words: WORDS.iter().chain(CAUSES).map(|[key, english, korean]| (*key, [*english, *korean])).collect(),
    };
    // Texts and numbers only: nothing here can fail to serialise.
    serde_json::to_string(&data).unwrap_or_default()
}

fn chart(chart: &charts::Chart) -> Json {
    let lines: Vec<Json> =
        chart.lines.iter().map(|l| json!([l.series, l.role.as_str(), l.word, clean(&l.label)])).collect();
    json!({ "id": chart.id, "unit": chart.unit, "node": chart.node, "lines": lines })
}

/// Each once: of many ranks the same files and identities are told very often.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    known: BTreeMap<String, usize>,
}

impl Texts {
    fn place(&mut self, text: &str) -> usize {
        let text = clean(text);
        *self.known.entry(text).or_insert_with_key(|text| {
            self.all.push(text.clone());
            self.all.len() - 1
        })
    }
}

/// Series, ranks, scope, source, level, identity, note.
fn measured(report: &Report, texts: &mut Texts) -> Vec<Json> {
    let mut row = |m: &super::Measured| {
        let mut optional = |text: &Option<String>| text.as_deref().map(|text| texts.place(text));
        let (level, identity, note) = (optional(&m.level), optional(&m.identity), optional(&m.note));
        let (series, scope, source) = (texts.place(&m.series), texts.place(&m.scope), texts.place(&m.source));
        json!([series, m.ranks, scope, source, level, identity, note])
    };
    report.measured.iter().map(&mut row).collect()
}

fn sentences(report: &Report) -> BTreeMap<String, String> {
    let verdict = &report.verdict;
    let shown = verdict.advice.iter().chain(&report.remarks).chain([&verdict.sentence]);
    let shown = shown.chain(verdict.timeline.iter().map(|entry| &entry.words));
    let shown = shown.chain(verdict.followers.iter().map(|follower| &follower.detail));
    let shown = shown.chain(verdict.evidence.iter().flatten());
    let shown = shown.chain(report.marks.iter().map(|mark| &mark.words));
    let shown = shown.chain(report.missing.iter().flat_map(|gone| [&gone.reason, &gone.detail]));
    let shown = shown.chain(report.measured.iter().flat_map(|m| m.note.iter().chain([&m.source])));
    let shown = shown.chain(report.spent.iter().flat_map(|spent| &spent.missing));
    let named = report.measured.iter().map(|m| &m.series).chain(report.missing.iter().map(|m| &m.series));
    let known = named.filter_map(|name| series::by_name(name));
    let of_series = known.flat_map(|row| [Some(row.about), row.not].into_iter().flatten());
    let all: BTreeSet<&str> = shown.map(String::as_str).chain(of_series).collect();
    all.into_iter()
        .filter_map(|one| Some((clean(one), clean(&korean(one)?))))
        .filter(|(a, b)| a != b)
        .collect()
}

/// What lies behind the charts of a GPU, one under the other: what was marked or seen, then each GPU's phases. Of a stretch
/// when it began, how long it was, and its name.
fn lanes(report: &Report) -> Vec<Json> {
    let since =
        |from: i64, until: i64, name: &str| json!([from - report.started_unix_ms, until - from, clean(name)]);
    let mut named: BTreeMap<(u32, usize), Vec<Json>> = BTreeMap::new();
    for band in &report.bands {
        let stretch = since(band.from_unix_ms, band.until_unix_ms, &band.name);
        named.entry((band.rank, band.lane)).or_default().push(stretch);
    }
    let named = named.into_iter().map(|((rank, _), all)| json!({ "ranks": [rank], "stretches": all }));
    let spent = report.spent.iter().map(|spent| {
        let all = spent.stretches.iter().map(|s| since(s.from_unix_ms, s.until_unix_ms, s.kind));
        let shares: Vec<Json> = shares(&spent.usage).map(|(kind, share)| json!([kind, Number::of(share)])).collect();
        let missing: Vec<String> = spent.missing.iter().map(|why| clean(why)).collect();
        json!({ "ranks": spent.ranks, "gpu": clean(&spent.gpu.replace('_', " ")), "row": spent.row_ms, "shares": shares,
            "missing": missing, "stretches": all.collect::<Vec<Json>>() })
    });
    named.chain(spent).collect()
}

fn track(track: &Track) -> OneTrack<'_> {
    let mut before = 0;
    let step = |time: &i64| {
        let since = time - before;
        before = *time;
        since
    };
    OneTrack {
        node: clean(&track.node),
        ranks: &track.ranks,
        times: track.times.iter().map(step).collect(),
        pieces: track.pieces.iter().map(|p| [p.until_unix_ms, p.bucket_ms]).collect(),
        tiers: track.tiers.iter().map(|t| (t.name, t.until_unix_ms, t.row_ms)).collect(),
        lines: track.lines.iter().map(line).collect(),
        elsewhere: &track.elsewhere,
    }
}

fn line(line: &Line) -> OneLine<'_> {
    let of = |pick: &dyn Fn(&Value) -> f64| {
        Numbers(line.values.iter().map(|v| v.as_ref().map(|v| Number::of(pick(v)))).collect())
    };
    let mean = of(&|v| v.told(line.kind));
    let (low, high) = (of(&|v| v.min), of(&|v| v.max));
    let flat = line.kind != Kind::Gauge || (low == mean && high == mean);
    let always = mean.0.first().copied().flatten().filter(|first| mean.0.iter().all(|v| *v == Some(*first)));
    let constant = always.filter(|_| flat);
    OneLine {
        series: &line.series,
        rank: line.rank,
        value: constant,
        mean: constant.is_none().then_some(mean),
        low: (!flat).then_some(low),
        high: (!flat).then_some(high),
    }
}
