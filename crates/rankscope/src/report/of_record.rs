//! One record → one track, from the coarsest tier that gives enough points, and how its GPUs' time was spent.

use std::collections::HashMap;

use rankscope_core::deliver::{StoredSeries, StoredValue};
use rankscope_core::report::charts::{CPU, is_wanted};
use rankscope_core::report::grid::{Grid, Piece};
use rankscope_core::report::phases;
use rankscope_core::report::track::{Builder, Tier as Told};
use rankscope_core::report::{Line, Spent, Track, Value};

use super::How;
use super::phases::Rows;
use crate::store::{ROLLUP_MS, Reader, Record, TICKS_KEPT_MS, Tier};

pub fn is_drawn(series: &StoredSeries, few: bool) -> bool {
    is_wanted(&series.name, few)
}

pub fn track(reader: &Reader, record: &Record, how: &How) -> rusqlite::Result<(Track, Vec<Spent>)> {
    let mut series: Vec<StoredSeries> = reader.series()?;
    let mut gpus = Rows::of(&series);
    series.retain(|s| is_drawn(s, how.few));
    let at: HashMap<i64, usize> = series.iter().enumerate().map(|(at, s)| (s.id, at)).collect();
    let cpu = series.iter().find(|s| s.name == CPU).map(|s| s.id);
    let start = record.attempt.start_unix_ms;
    let last = reader.last_tick_unix_ms()?.unwrap_or(start);
    let end =
        record.attempt.ended_unix_ms.unwrap_or(record.attempt.heartbeat_unix_ms).max(last).max(start + 1);
    let grid = Grid::new(start, end, how.points);
    let pieces = grid.pieces.clone();
    let mut builder = Builder::new(grid, series.into_iter().map(line).collect());
    let mut rows: Vec<(f64, u64)> = Vec::new();
    let mut tiers: Vec<Told> = Vec::new();
    let mut after = i64::MIN;
    let mut read = |tier: Tier, until: i64| -> rusqlite::Result<()> {
        gpus.expect(row_ms(tier, record));
        let mut each = |unix_ms: i64, value: &StoredValue| {
            if cpu == Some(value.series) {
                rows.push((value.mean, value.n));
            }
            gpus.add(unix_ms, value.series, value.mean);
            if let Some(line) = at.get(&value.series) {
                builder.add(unix_ms, *line, of(value));
            }
        };
        let newest = reader.rows(tier, (after, until), &mut each)?;
        after = newest.unwrap_or(after);
        Ok(())
    };
    for (n, piece) in pieces.iter().enumerate() {
        let is_last = n + 1 == pieces.len();
        let until = if is_last { i64::MAX } else { piece.until_unix_ms };
        let tier = tier(piece, record, end);
        read(tier, until)?;
        tiers.push(Told { name: tier.as_str(), until_unix_ms: until.min(end), row_ms: row_ms(tier, record) });
    }
    // What came to no window any more.
    read(Tier::Ticks, i64::MAX)?;
    let cpu_row_ms = tiers.first().map_or(0, |tier| tier.row_ms);
    let ranks: Vec<u32> = record.ranks().into_iter().collect();
    let told = phases::How { in_company: how.in_company, stretches: how.points };
    let spent = gpus.spent((start, end), &ranks, told);
    let track = Track { ranks, node: record.node.clone(), tiers, cpu: rows, cpu_row_ms, ..builder.finish() };
    Ok((track, spent))
}

fn line(series: StoredSeries) -> Line {
    let StoredSeries { name, rank, kind, scope, identity, .. } = series;
    Line { series: name, rank, kind, scope, identity, values: Vec::new() }
}

fn of(value: &StoredValue) -> Value {
    Value { n: value.n, mean: value.mean, min: value.min, max: value.max, last: value.last }
}

fn row_ms(tier: Tier, record: &Record) -> i64 {
    match tier {
        Tier::Rollups => ROLLUP_MS,
        Tier::Windows => record.window_ms as i64,
        Tier::Ticks => record.interval_ms as i64,
    }
}

/// Half of the points that a piece could have are enough.
fn tier(piece: &Piece, record: &Record, end: i64) -> Tier {
    let enough = piece.bucket_ms.saturating_mul(2);
    let all_ticks = piece.from_unix_ms >= end - TICKS_KEPT_MS && record.dropped_ticks == 0;
    match () {
        () if row_ms(Tier::Rollups, record) <= enough => Tier::Rollups,
        () if row_ms(Tier::Windows, record) <= enough || !all_ticks => Tier::Windows,
        () => Tier::Ticks,
    }
}
