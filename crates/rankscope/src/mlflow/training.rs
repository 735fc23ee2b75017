//! `training_step` of a run whose script logs metrics by step. After the job's end, when all that it logged is there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rankscope_core::deliver::names::key;
use rankscope_core::deliver::training::{StepsAt, candidates};
use rankscope_core::series::TRAINING_STEP;

use super::batch::batches;
use super::client::HistoryQuery;
use super::delivery::{Delivery, Phase};
use super::trouble::Trouble;
use super::types::{Metric, Page, Point};
use crate::store::TrainingOf;

/// A metric with so many points was logged often enough: no other is looked at.
const OFTEN: u32 = 500;
const PAGE: u32 = 10_000;
/// A list that never ends is none.
const MAX_PAGES: usize = 500;

impl Delivery {
    /// Of all runs, and only by rank 0: one key a run. Requests end at `until`; a later call does the rest.
    pub fn training_step(&mut self, until: Option<Instant>) -> Result<(), Trouble> {
        // What the store itself knows goes out like every other series.
        let is_stored = self.reader.was_measured(TRAINING_STEP.name)?;
        if self.who.rank == 0 && !is_stored {
            (0..self.targets.len()).try_for_each(|at| self.training_step_of(at, until))?;
        }
        Ok(())
    }

    fn training_step_of(&mut self, at: usize, until: Option<Instant>) -> Result<(), Trouble> {
        let Some(target) = self.targets.get(at) else { return Ok(()) };
        let (row, run_id, timeline) = (target.row.id, target.run.id.clone(), target.timeline);
        let key = key(target.subjects.of(TRAINING_STEP.scope), TRAINING_STEP.name);
        let mut training = self.reader.training_of(row)?;
        let windows = self.reader.delivered_times(row, training.through)?;
        let Some(last) = windows.last() else { return Ok(()) };
        if training.metric.is_none() {
            training.metric = self.metric_by_step(&run_id, until)?;
            self.note(row, &training);
        }
        let mut points = Vec::new();
        if let Some(metric) = &training.metric {
            let steps = StepsAt::new(windows.iter().map(|w| w.last_unix_ms));
            let query = HistoryQuery { run_id: &run_id, key: metric, max_results: PAGE, page_token: None };
            let known = self.steps(query, steps, until)?;
            points.extend(windows.iter().filter_map(|window| {
                let step = *known.get(&window.last_unix_ms)?;
                let timestamp_ms = window.last_unix_ms.max(0);
                Metric::new(&key, step as f64, timestamp_ms, timeline.step(window.last_boottime_ns)).ok()
            }));
        }
        if points.is_empty() && training.through == 0 {
            training.metric = None;
        }
        let count = points.len() as u64;
        for batch in batches(points, Vec::new()) {
            self.limit(until);
            self.refused.add(self.client.log_batch(&run_id, &batch)?);
        }
        training.through = last.id;
        self.note(row, &training);
        self.points += count;
        if let Some(target) = self.targets.get_mut(at).filter(|_| count > 0) {
            target.provenance = None;
            self.tell(at, Phase::Over(None))?;
        }
        Ok(())
    }

    /// A full disk keeps nothing from the server.
    fn note(&mut self, row: i64, training: &TrainingOf) {
        if let Err(error) = self.reader.set_training_of(row, training) {
            self.remark = Some(Trouble::NotNoted(error.to_string()));
        }
    }

    /// The metric to take the steps from: the one logged most often, of those that came as far.
    fn metric_by_step(&mut self, run_id: &str, until: Option<Instant>) -> Result<Option<String>, Trouble> {
        self.limit(until);
        let run = self.client.get_run(run_id)?;
        let mut best: Option<(usize, &str)> = None;
        for key in candidates(run.metrics.iter().map(|m| (m.key.as_str(), m.point.step))) {
            let query = HistoryQuery { run_id, key, max_results: OFTEN, page_token: None };
            let count = self.history_page(&query, until)?.items.len();
            if best.is_none_or(|(most, _)| count > most) {
                best = Some((count, key));
            }
            if count >= OFTEN as usize {
                break;
            }
        }
        Ok(best.map(|(_, key)| key.to_owned()))
    }

    /// Time of a window's last reading → step.
    fn steps(
        &mut self,
        mut query: HistoryQuery,
        mut steps: StepsAt,
        until: Option<Instant>,
    ) -> Result<BTreeMap<i64, i64>, Trouble> {
        let start_unix_ms = self.record.attempt.start_unix_ms;
        for _ in 0..MAX_PAGES {
            let page = self.history_page(&query, until)?;
            // An earlier attempt's points say nothing about this one.
            for point in page.items.iter().filter(|p| p.timestamp_ms >= start_unix_ms) {
                steps.see(point.timestamp_ms, point.step);
            }
            query.page_token = page.next;
            if query.page_token.is_none() {
                return Ok(steps.known());
            }
        }
        Ok(BTreeMap::new())
    }

    fn history_page(&mut self, query: &HistoryQuery, until: Option<Instant>) -> Result<Page<Point>, Trouble> {
        self.limit(until);
        Ok(self.client.metric_history_page(query)?)
    }

    /// No request beyond `until`: the end of `run` waits for it.
    fn limit(&mut self, until: Option<Instant>) {
        if let Some(until) = until {
            let left = until.saturating_duration_since(Instant::now());
            self.client.set_timeout(left.max(Duration::from_millis(1)));
        }
    }
}
