//! Rows of a record → one track: the same times for all of its lines, few enough to draw.
//!
//! What falls into one bucket is merged as a roll-up merges: the mean by weight, the minimum, the maximum, the last.
//! So a peak of a second is still there in a picture of a hundred hours.

use std::collections::BTreeMap;

use super::grid::{Grid, Piece};
use crate::series::{Kind, Scope};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    pub n: u64,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    pub last: f64,
}

impl Value {
    pub fn of_one(value: f64) -> Value {
        Value { n: 1, mean: value, min: value, max: value, last: value }
    }

    /// What is told of a stretch of time.
    pub fn told(&self, kind: Kind) -> f64 {
        match kind {
            Kind::Gauge => self.mean,
            Kind::Counter | Kind::Constant => self.last,
        }
    }

    fn add(&mut self, later: &Value) {
        let n = self.n + later.n;
        if n > 0 {
            self.mean = (self.mean * self.n as f64 + later.mean * later.n as f64) / n as f64;
        }
        self.n = n;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.last = later.last;
    }
}

/// One series over the times of its track.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub series: String,
    /// Of one rank's processes, where the recorder stood above several.
    pub rank: Option<u32>,
    pub kind: Kind,
    pub scope: Scope,
    pub identity: Option<String>,
    /// As many as the track has times.
    pub values: Vec<Option<Value>>,
}

/// What one recorder recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    pub ranks: Vec<u32>,
    pub node: String,
    /// Of the last reading in each bucket, ascending.
    pub times: Vec<i64>,
    pub pieces: Vec<Piece>,
    pub lines: Vec<Line>,
    /// Series that stand in another track, which read the same thing.
    pub elsewhere: BTreeMap<String, usize>,
    /// Length of what was read: samples, windows, roll-ups, each until a time.
    pub tiers: Vec<Tier>,
    /// Mean CPU use of each row that was read, with its weight.
    pub cpu: Vec<(f64, u64)>,
    /// How long those rows are.
    pub cpu_row_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// `ticks`, `windows`, `rollups`, `run`.
    pub name: &'static str,
    pub until_unix_ms: i64,
    /// Length of one of its rows.
    pub row_ms: i64,
}

impl Track {
    pub fn line(&self, series: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.series == series && line.rank.is_none())
    }
}

/// Puts a track together while rows come, oldest first.
#[derive(Debug)]
pub struct Builder {
    grid: Grid,
    open: Option<(usize, i64)>,
    times: Vec<i64>,
    lines: Vec<Line>,
}

impl Builder {
    /// `lines`: without values.
    pub fn new(grid: Grid, lines: Vec<Line>) -> Builder {
        Builder { grid, open: None, times: Vec::new(), lines }
    }

    /// Values of one moment; the indices are those of the lines.
    pub fn add(&mut self, unix_ms: i64, line: usize, value: Value) {
        let bucket = self.grid.bucket(unix_ms);
        match (self.open == Some(bucket), self.times.last_mut()) {
            (true, Some(time)) => *time = (*time).max(unix_ms),
            _ => {
                self.open = Some(bucket);
                // A clock that was set back does not turn the axis.
                let after = self.times.last().map_or(i64::MIN, |last| last + 1);
                self.times.push(unix_ms.max(after));
            }
        }
        let Some(line) = self.lines.get_mut(line) else { return };
        let at = self.times.len() - 1;
        line.values.resize(at + 1, None);
        match &mut line.values[at] {
            Some(before) => before.add(&value),
            free => *free = Some(value),
        }
    }

    /// Lines that never had a value are left out.
    pub fn finish(mut self) -> Track {
        self.lines.retain(|line| line.values.iter().any(Option::is_some));
        self.lines.iter_mut().for_each(|line| line.values.resize(self.times.len(), None));
        Track { times: self.times, pieces: self.grid.pieces, lines: self.lines, ..Track::default() }
    }
}

/// Lines that are made of others: what the charts show and no series is.
pub fn derive(track: &mut Track) {
    let mut made = Vec::new();
    if let Some(file) = track.line(super::charts::FILE) {
        let shmem = track.line(super::charts::SHMEM);
        made.push(cache(file, shmem));
    }
    for (counter, rate) in super::charts::RATES {
        if let Some(line) = track.line(counter) {
            made.push(rate_of(line, rate, &track.times));
        }
    }
    track.lines.retain(|line| super::charts::RATES.iter().all(|(counter, _)| line.series != *counter));
    track.lines.extend(made);
}

/// Page cache: the kernel counts shared memory as file too.
fn cache(file: &Line, shmem: Option<&Line>) -> Line {
    let less = |at: usize, value: &Value| {
        let shmem = shmem.and_then(|line| line.values[at]).map_or(0.0, |v| v.mean);
        Value::of_one((value.mean - shmem).max(0.0))
    };
    let values = file.values.iter().enumerate().map(|(at, v)| v.as_ref().map(|v| less(at, v))).collect();
    Line { series: super::charts::CACHE.to_owned(), values, ..file.clone() }
}

/// Growth of a counter from bucket to bucket, a second. One that was counted anew gives none.
fn rate_of(line: &Line, name: &str, times: &[i64]) -> Line {
    let mut before: Option<(i64, f64)> = None;
    let values = line.values.iter().zip(times).map(|(value, time)| {
        let now = value.as_ref().map(|v| v.last)?;
        let rate = before.filter(|(t, last)| time > t && now >= *last);
        let rate = rate.map(|(t, last)| (now - last) / ((time - t) as f64 / 1e3));
        before = Some((*time, now));
        rate.map(Value::of_one)
    });
    Line { series: name.to_owned(), kind: Kind::Gauge, values: values.collect(), ..line.clone() }
}

/// What several recorders read of one and the same thing stays with the first.
pub fn share(tracks: &mut [Track]) {
    let mut first: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (at, track) in tracks.iter_mut().enumerate() {
        let elsewhere = &mut track.elsewhere;
        track.lines.retain(|line| {
            let Some(identity) = line.identity.clone().filter(|_| line.rank.is_none()) else { return true };
            let owner = *first.entry((identity, line.series.clone())).or_insert(at);
            if owner != at {
                elsewhere.insert(line.series.clone(), owner);
            }
            owner == at
        });
    }
}

/// The value below which so much of the weight lies.
pub fn quantile(values: &[(f64, u64)], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: u64 = sorted.iter().map(|(_, n)| n).sum();
    let mut below = 0;
    sorted.into_iter().find_map(|(value, n)| {
        below += n;
        (below as f64 >= all as f64 * share).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(series: &str) -> Line {
        let (kind, scope) = (Kind::Gauge, Scope::Container);
        Line { series: series.to_owned(), rank: None, kind, scope, identity: None, values: Vec::new() }
    }

    #[test]
    fn a_bucket_keeps_its_extremes_and_a_missing_value_stays_missing() {
        let mut builder = Builder::new(Grid::new(0, 40_000, 4), vec![line("a"), line("b"), line("never")]);
        for (at, value) in [(1000, 1.0), (2000, 9.0), (3000, 2.0), (25_000, 4.0)] {
            builder.add(at, 0, Value::of_one(value));
        }
        builder.add(25_000, 1, Value::of_one(7.0));
        let track = builder.finish();
        assert_eq!(track.times, [3000, 25_000]);
        assert_eq!(track.lines.len(), 2);
        let first = track.lines[0].values[0].unwrap();
        assert_eq!((first.n, first.mean, first.min, first.max, first.last), (3, 4.0, 1.0, 9.0, 2.0));
        assert_eq!(track.lines[1].values, [None, Some(Value::of_one(7.0))]);
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_the_order() {
        let mut builder = Builder::new(Grid::new(0, 10_000, 10), vec![line("a")]);
        [1500, 2500, 900, 3500].into_iter().for_each(|at| builder.add(at, 0, Value::of_one(1.0)));
        let times = builder.finish().times;
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    }

    #[test]
    fn shared_memory_is_no_page_cache_and_a_counter_is_drawn_as_its_rate() {
        let full = |series: &str, values: &[f64]| Line {
            values: values.iter().map(|v| Some(Value::of_one(*v))).collect(),
            ..line(series)
        };
        let mut track = Track {
            times: vec![1000, 2000, 4000],
            lines: vec![
                full(super::super::charts::FILE, &[10.0, 20.0, 5.0]),
                full(super::super::charts::SHMEM, &[4.0, 4.0, 6.0]),
                full("container_io_read_megabytes", &[100.0, 103.0, 50.0]),
            ],
            ..Track::default()
        };
        derive(&mut track);
        let told = |series: &str| -> Vec<Option<f64>> {
            track.line(series).unwrap().values.iter().map(|v| v.map(|v| v.mean)).collect()
        };
        assert_eq!(told(super::super::charts::CACHE), [Some(6.0), Some(16.0), Some(0.0)]);
        assert_eq!(told("container_io_read_megabytes_per_second"), [None, Some(3.0), None]);
        assert!(track.line("container_io_read_megabytes").is_none());
    }

    #[test]
    fn one_thing_is_kept_once() {
        let of = |identity: &str| Line { identity: Some(identity.to_owned()), ..line("node_load_1m") };
        let track = |lines: Vec<Line>| Track { lines, ..Track::default() };
        let mut tracks = [track(vec![of("a")]), track(vec![of("a")]), track(vec![of("b")])];
        share(&mut tracks);
        assert_eq!(tracks.iter().map(|t| t.lines.len()).collect::<Vec<_>>(), [1, 0, 1]);
        assert_eq!(tracks[1].elsewhere.get("node_load_1m"), Some(&0));
    }

    #[test]
    fn a_quantile_goes_by_weight() {
        let values: Vec<(f64, u64)> = (1..=100).map(|n| (f64::from(n), 1)).collect();
        assert_eq!(quantile(&values, 0.95), Some(95.0));
        assert_eq!(quantile(&[(1.0, 99), (50.0, 1)], 0.95), Some(1.0));
        assert_eq!(quantile(&[], 0.95), None);
    }
}
