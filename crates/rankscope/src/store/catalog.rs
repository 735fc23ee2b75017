//! The rows of `series`, `origin` and `missing`: which exist, and which must be written because something changed.
//!
//! Everything kept here is a copy of what the database holds, so after a transaction that failed the catalogue is
//! cleared and fills itself again.

use std::borrow::Cow;
use std::sync::Arc;

use rankscope_core::gap::{Gap, Reason};
use rankscope_core::reading::{Missing, Origin, Readings, name_of};
use rankscope_core::series::Series;
use rankscope_core::window::Window;
use rusqlite::{Connection, OptionalExtension, params};

#[derive(Debug)]
struct Known {
    series: &'static Series,
    label: Option<Arc<str>>,
    id: i64,
    origin: Option<Arc<Origin>>,
    gap: Option<OpenGap>,
    /// Whether it had a value or a gap yet, in this file.
    met: bool,
    /// CLOCK_BOOTTIME of the newest reading applied: what is older changes nothing.
    newest_ns: u64,
}

/// Row of `missing` that has no end yet.
#[derive(Debug)]
struct OpenGap {
    row: i64,
    reason: Cow<'static, str>,
    detail: Arc<str>,
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub unix_ms: i64,
    pub boottime_ns: u64,
}

#[derive(Debug, Default)]
pub struct Catalog {
    known: Vec<Known>,
}

impl Catalog {
    pub fn clear(&mut self) {
        self.known.clear();
    }

    /// Id of a series that has a value at `now`; writes what is new about it. `hint` is the place after the last
    /// answer: ticks list their series in the same order.
    pub fn present(&mut self, db: &Connection, key: Key<'_>, origin: &Arc<Origin>, now: Moment) -> Found {
        let at = self.find(db, key)?;
        let known = &mut self.known[at];
        if now.boottime_ns < known.newest_ns {
            return Ok((known.id, at + 1));
        }
        known.newest_ns = now.boottime_ns;
        known.met = true;
        if let Some(gap) = known.gap.take() {
            close_gap(db, &gap, now.unix_ms)?;
        }
        let same = known.origin.as_ref().is_some_and(|o| Arc::ptr_eq(o, origin) || o == origin);
        if !same {
            db.prepare_cached(
                "INSERT INTO origin (series_id, since_unix_ms, since_boottime_ns, identity, source, level, note)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                known.id,
                now.unix_ms,
                now.boottime_ns,
                origin.identity.as_deref(),
                &*origin.source,
                origin.level.as_deref(),
                origin.note.as_deref()
            ])?;
        }
        if !known.origin.as_ref().is_some_and(|o| Arc::ptr_eq(o, origin)) {
            known.origin = Some(origin.clone());
        }
        Ok((known.id, at + 1))
    }

    /// Gaps of a tick. Only a series that was never met gets a row: one that comes and goes from tick to tick would
    /// fill the table, so for the others whole windows decide.
    pub fn missing_in_tick(&mut self, db: &Connection, tick: &Readings) -> rusqlite::Result<()> {
        let mut hint = 0;
        for missing in tick.missing.iter().filter(|m| m.gap.reason != Reason::FirstSample) {
            let at = self.find(db, Key { series: missing.series, label: &missing.label, hint })?;
            hint = at + 1;
            if !self.known[at].met {
                self.open_gap(db, at, &missing.gap, tick.unix_ms)?;
            }
        }
        Ok(())
    }

    /// Series that had no value in a whole window.
    pub fn missing_in_window(&mut self, db: &Connection, window: &Window) -> rusqlite::Result<()> {
        for Missing { series, label, gap } in &window.missing {
            let at = self.find(db, Key { series, label, hint: 0 })?;
            let known = &self.known[at];
            let unchanged = known
                .gap
                .as_ref()
                .is_some_and(|open| open.reason == gap.reason.as_str() && open.detail == gap.detail);
            if !unchanged && known.newest_ns <= window.last_boottime_ns {
                self.open_gap(db, at, gap, window.start_unix_ms)?;
            }
        }
        Ok(())
    }

    fn open_gap(&mut self, db: &Connection, at: usize, gap: &Gap, unix_ms: i64) -> rusqlite::Result<()> {
        let known = &mut self.known[at];
        if let Some(open) = known.gap.take() {
            close_gap(db, &open, unix_ms)?;
        }
        db.prepare_cached(
            "INSERT INTO missing (series_id, reason, detail, since_unix_ms) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![known.id, gap.reason.as_str(), &*gap.detail, unix_ms])?;
        known.gap = Some(OpenGap {
            row: db.last_insert_rowid(),
            reason: Cow::Borrowed(gap.reason.as_str()),
            detail: gap.detail.clone(),
        });
        known.met = true;
        Ok(())
    }

    fn find(&mut self, db: &Connection, key: Key<'_>) -> rusqlite::Result<usize> {
        let matches = |k: &Known| std::ptr::eq(k.series, key.series) && k.label == *key.label;
        if self.known.get(key.hint).is_some_and(matches) {
            return Ok(key.hint);
        }
        if let Some(at) = self.known.iter().position(matches) {
            return Ok(at);
        }
        self.known.push(load(db, key.series, key.label)?);
        Ok(self.known.len() - 1)
    }
}

/// Series id, and the hint for the next search.
type Found = rusqlite::Result<(i64, usize)>;

/// What `Catalog` searches for.
#[derive(Clone, Copy)]
pub struct Key<'a> {
    pub series: &'static Series,
    pub label: &'a Option<Arc<str>>,
    pub hint: usize,
}

/// What the database holds of a series; makes its row if it is new.
fn load(db: &Connection, series: &'static Series, label: &Option<Arc<str>>) -> rusqlite::Result<Known> {
    let name = name_of(series, label.as_deref());
    let id: Option<i64> =
        db.query_row("SELECT id FROM series WHERE name = ?1", [&name], |row| row.get(0)).optional()?;
    let mut known =
        Known { series, label: label.clone(), id: 0, origin: None, gap: None, met: false, newest_ns: 0 };
    let Some(id) = id else {
        db.prepare_cached("INSERT INTO series (name, unit, kind, scope, class) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![
                name,
                series.unit,
                series.kind.as_str(),
                series.scope.as_str(),
                series.class.as_str()
            ])?;
        known.id = db.last_insert_rowid();
        return Ok(known);
    };
    known.id = id;
    known.met = true;
    let text = |text: Option<String>| text.map(Arc::from);
    let origin = "SELECT identity, source, level, note, since_boottime_ns FROM origin
        WHERE series_id = ?1 ORDER BY id DESC LIMIT 1";
    let origin = db.query_row(origin, [id], |row| {
        let source: String = row.get(1)?;
        let origin = Origin {
            identity: text(row.get(0)?),
            source: source.into(),
            level: text(row.get(2)?),
            note: text(row.get(3)?),
        };
        Ok((Arc::new(origin), row.get(4)?))
    });
    if let Some((origin, since)) = origin.optional()? {
        (known.origin, known.newest_ns) = (Some(origin), since);
    }
    let open = "SELECT id, reason, detail FROM missing WHERE series_id = ?1 AND until_unix_ms IS NULL
        ORDER BY id DESC LIMIT 1";
    let open = db.query_row(open, [id], |row| {
        let (reason, detail): (String, String) = (row.get(1)?, row.get(2)?);
        Ok(OpenGap { row: row.get(0)?, reason: reason.into(), detail: detail.into() })
    });
    known.gap = open.optional()?;
    Ok(known)
}

fn close_gap(db: &Connection, gap: &OpenGap, unix_ms: i64) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE missing SET until_unix_ms = ?1 WHERE id = ?2")?
        .execute(params![unix_ms, gap.row])?;
    Ok(())
}
