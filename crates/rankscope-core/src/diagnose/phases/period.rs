//! How often the idle phases come back.

use super::super::findings::Phase;
use super::super::observations::Mark;
use super::super::series::quantile;
use super::{Grid, IDLE};

/// Starts of idle phases that a period needs.
const STARTS: usize = 4;
/// Median distance of the gaps from their median, relative to it.
const UNEVEN: f64 = 0.15;
/// Autocorrelation from which a series repeats itself.
const REPEATS: f64 = 0.5;

/// Whole epochs in the window that a comparison needs.
const EPOCHS: usize = 2;
/// Idle phases of an epoch at most: its validation, its checkpoint, and one more.
const OF_AN_EPOCH: usize = 3;
/// Where an epoch is cut for the comparison, in parts of one: a phase may begin right at the mark, a moment before or after.
const CUTS: [f64; 4] = [0.0, 0.25, 0.5, 0.75];

/// Seconds. By the starts of phases; where these are cut unevenly, by the series itself.
pub fn of(phases: &[Phase], lost: &[Option<f64>], grid: Grid) -> Option<f64> {
    by_starts(phases).or_else(|| by_likeness(lost, grid))
}

fn by_starts(phases: &[Phase]) -> Option<f64> {
    // One that was there at the beginning has no known start.
    let starts: Vec<f64> =
        phases.iter().filter(|p| p.kind == IDLE && p.start_s > 0.0).map(|p| p.start_s).collect();
    if starts.len() < STARTS {
        return None;
    }
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let middle = quantile(gaps.clone(), 0.5)?;
    let spread = quantile(gaps.iter().map(|gap| (gap - middle).abs()).collect(), 0.5)?;
    (spread <= UNEVEN * middle)
        .then(|| gaps.iter().sum::<f64>() / gaps.len() as f64)
        .filter(|mean| (mean - middle).abs() <= UNEVEN * middle)
}

/// Seconds of an epoch, if each has as many idle phases as the others.
pub fn of_epochs<'a>(phases: &[Phase], marks: impl Iterator<Item = &'a Mark>, grid: Grid) -> Option<f64> {
    let mut marks: Vec<(f64, i64)> = marks.filter_map(|m| Some((m.at_s, m.epoch?))).collect();
    marks.retain(|(at_s, _)| at_s.is_finite());
    marks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let begins: Vec<f64> = marks.windows(2).filter(|m| m[1].1 == m[0].1 + 1).map(|m| m[1].0).collect();
    let lengths = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let length = quantile(lengths, 0.5).filter(|length| *length > 0.0)?;
    let idle = |from: f64, to: f64| {
        let begins = phases.iter().filter(|p| p.kind == IDLE && p.start_s > 0.0);
        begins.filter(|p| (from..to).contains(&p.start_s)).count()
    };
    let recur = CUTS.iter().any(|cut| {
        let spans = begins.windows(2).map(|pair| (pair[0] - cut * length, pair[1] - cut * length));
        let whole = spans.filter(|(from, to)| *from >= 0.0 && *to <= grid.window());
        let each: Vec<usize> = whole.map(|(from, to)| idle(from, to)).collect();
        each.len() >= EPOCHS && each.iter().all(|n| *n == each[0] && (1..=OF_AN_EPOCH).contains(n))
    });
    recur.then(|| (begins[begins.len() - 1] - begins[0]) / (begins.len() - 1) as f64)
}

/// The first peak of the autocorrelation that stands out, seen at least three times in the window.
fn by_likeness(lost: &[Option<f64>], grid: Grid) -> Option<f64> {
    let known: Vec<f64> = lost.iter().flatten().copied().collect();
    // Minutes at 5 Hz are enough; the cost grows with the square.
    if known.len() * 10 < lost.len() * 9 || known.len() > 4000 {
        return None;
    }
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let series: Vec<f64> = lost.iter().map(|v| v.map_or(0.0, |v| v - mean)).collect();
    let energy: f64 = series.iter().map(|v| v * v).sum();
    if energy / series.len() as f64 <= 0.01 {
        return None;
    }
    let likeness = |lag: usize| {
        let sum: f64 = series.iter().zip(&series[lag..]).map(|(a, b)| a * b).sum();
        sum / energy * series.len() as f64 / (series.len() - lag) as f64
    };
    let lags: Vec<f64> = (0..=series.len() / 3).map(likeness).collect();
    let fallen = lags.iter().position(|&r| r < 0.0)?;
    let (lag, peak) =
        lags.iter().enumerate().skip(fallen).max_by(|a, b| a.1.total_cmp(b.1)).map(|(lag, &r)| (lag, r))?;
    // The smallest lag that is nearly as good: its multiples repeat as well.
    let first = (fallen..lag).find(|&l| {
        lags[l] >= 0.85 * peak && lags[l] >= lags[l - 1] && lags.get(l + 1).is_none_or(|r| lags[l] >= *r)
    });
    (peak >= REPEATS).then(|| first.unwrap_or(lag) as f64 * grid.seconds).filter(|_| lag >= 4)
}
