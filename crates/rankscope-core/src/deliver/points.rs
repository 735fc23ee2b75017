//! Groups of windows → points.

use std::collections::HashMap;

use super::names::{Subjects, Writer, key};
use super::{Point, StoredSeries, StoredValue, StoredWindow, Timeline};
use crate::series::{self, Class, Kind};

/// Renders the windows of one run, oldest first.
#[derive(Debug)]
pub struct Renderer {
    timeline: Timeline,
    subjects: Subjects,
    classes: Classes,
    series: HashMap<i64, Rendered>,
}

/// Which delivery classes go out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Classes {
    #[default]
    Core,
    All,
}

impl Classes {
    pub fn hold(self, class: Class) -> bool {
        match class {
            Class::Core => true,
            Class::All => self == Classes::All,
            Class::Store => false,
        }
    }
}

#[derive(Debug)]
struct Rendered {
    key: String,
    kind: Kind,
    /// Its highest value goes out, too.
    max_key: Option<String>,
    /// Of a constant: what the run has.
    sent: Option<f64>,
    /// Windows that begin earlier are another recorder's.
    from_unix_ms: i64,
}

impl Renderer {
    pub fn new(timeline: Timeline, subjects: Subjects, classes: Classes) -> Renderer {
        Renderer { timeline, subjects, classes, series: HashMap::new() }
    }

    /// Makes a series known; what is never made known, and what others write, is not rendered.
    pub fn learn(&mut self, series: &StoredSeries) {
        if !self.classes.hold(series.class) || self.series.contains_key(&series.id) {
            return;
        }
        let named = self.subjects.named(series);
        let Writer::Us { from_unix_ms } = named.writer else { return };
        let key = key(&named.subject, &series.name);
        let max_key = series::by_name(&series.name).filter(|s| s.with_max()).map(|_| format!("{key}_max"));
        let made = Rendered { key, kind: series.kind, max_key, sent: None, from_unix_ms };
        self.series.insert(series.id, made);
    }

    /// From now on series stand under other names, or are written by others. All have to be made known again.
    pub fn rename(&mut self, subjects: Subjects) {
        self.subjects = subjects;
        self.series.clear();
    }

    /// The value of a constant that the run has already.
    pub fn was_sent(&mut self, series: i64, value: f64) {
        if let Some(known) = self.series.get_mut(&series).filter(|s| s.kind == Kind::Constant) {
            known.sent = Some(value);
        }
    }

    /// The constants among the series made known.
    pub fn constants(&self) -> Vec<i64> {
        self.series.iter().filter(|(_, s)| s.kind == Kind::Constant).map(|(id, _)| *id).collect()
    }

    /// All points carry the window's one timestamp and step; what is not finite does not go out.
    pub fn render(&mut self, window: &StoredWindow, out: &mut Vec<Point>) {
        let step = self.timeline.step(window.last_boottime_ns);
        let timestamp_ms = window.last_unix_ms.max(0);
        let mut push = |key: &str, value: f64| {
            if value.is_finite() {
                out.push(Point { key: key.to_owned(), value, timestamp_ms, step });
            }
        };
        for value in &window.values {
            let Some(series) = self.series.get_mut(&value.series) else { continue };
            if window.start_unix_ms < series.from_unix_ms {
                continue;
            }
            let shown = shown(series.kind, value);
            if series.kind == Kind::Constant && series.sent.replace(shown) == Some(shown) {
                continue;
            }
            push(&series.key, shown);
            if let Some(key) = &series.max_key {
                push(key, value.max);
            }
        }
    }
}

fn shown(kind: Kind, value: &StoredValue) -> f64 {
    match kind {
        Kind::Gauge => value.mean,
        Kind::Counter | Kind::Constant => value.last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{CONTAINER_MEMORY_LIMIT, CONTAINER_MEMORY_OOM_KILLS, CONTAINER_MEMORY_WORKING_SET};

    fn value(series: i64, base: f64) -> StoredValue {
        StoredValue { series, n: 2, mean: base, min: base - 1.0, max: base + 1.0, last: base + 0.5 }
    }

    fn renderer(classes: Classes) -> Renderer {
        let line = Timeline { attempt_unix_ms: 0, attempt_boottime_ns: 0, run_start_unix_ms: 0 };
        let mut renderer = Renderer::new(line, Subjects::new(0, 1, "n"), classes);
        let table = [&CONTAINER_MEMORY_WORKING_SET, &CONTAINER_MEMORY_OOM_KILLS, &CONTAINER_MEMORY_LIMIT];
        for (id, s) in (1..).zip(table) {
            renderer.learn(&StoredSeries {
                id,
                name: s.name.into(),
                unit: s.unit.into(),
                kind: s.kind,
                scope: s.scope,
                class: s.class,
                identity: None,
                rank: None,
            });
        }
        renderer
    }

    #[test]
    fn one_window() {
        let mut renderer = renderer(Classes::Core);
        let mut window = StoredWindow {
            last_unix_ms: 9_900,
            last_boottime_ns: 9_900_000_000,
            values: vec![value(1, 5.0), value(2, 3.0), value(3, 8.0), value(4, 1.0)],
            ..StoredWindow::default()
        };
        let mut points = Vec::new();
        renderer.render(&window, &mut points);
        let seen: Vec<_> = points.iter().map(|p| (p.key.as_str(), p.value)).collect();
        assert_eq!(
            seen,
            [
                ("system/rank_0/container_memory_working_set_megabytes", 5.0),
                ("system/rank_0/container_memory_working_set_megabytes_max", 6.0),
                ("system/rank_0/container_memory_oom_kills", 3.5),
                ("system/rank_0/container_memory_limit_megabytes", 8.5),
            ]
        );
        assert!(points.iter().all(|p| p.timestamp_ms == 9_900 && p.step == 9));
        points.clear();
        window.values[1].last = f64::NAN;
        renderer.render(&window, &mut points);
        assert_eq!(points.len(), 2, "the limit has not changed, and NaN never goes out");
        window.values[2].last = 9.0;
        renderer.render(&window, &mut points);
        assert_eq!(points[4].value, 9.0);
    }

    #[test]
    fn a_constant_that_the_run_has_is_not_sent_again() {
        let mut renderer = renderer(Classes::All);
        assert_eq!(renderer.constants(), [3]);
        renderer.was_sent(3, 8.5);
        let mut points = Vec::new();
        let window = StoredWindow { values: vec![value(3, 8.0)], ..StoredWindow::default() };
        renderer.render(&window, &mut points);
        assert!(points.is_empty());
    }
}
