//! `system/job/…`, by rank 0, from what it reads of the run anyway.

use rankscope_core::deliver::Point;
use rankscope_core::deliver::rollup::roll_up;

use super::batch::batches;
use super::delivery::Delivery;
use super::trouble::Trouble;
use super::types::{Metric, Run};

impl Delivery {
    pub(super) fn rolls_up(&self) -> bool {
        self.who.rank == 0 && self.pace.is_shared()
    }

    /// `run`: as it was read just now; of several only the newest is rolled up.
    pub(super) fn roll_up(&mut self, run: &Run) -> Result<(), Trouble> {
        let Some(target) = self.targets.last().filter(|target| target.run.id == run.id) else {
            return Ok(());
        };
        // A turn may have been left out, and so may a window.
        let between = self.pace.period().as_millis() as i64 + target.window_ms();
        let latest: Vec<Point> = run
            .metrics
            .iter()
            .map(|m| Point {
                key: m.key.clone(),
                value: m.point.value,
                timestamp_ms: m.point.timestamp_ms,
                step: m.point.step,
            })
            .collect();
        let points = roll_up(&latest, 2 * between);
        let metrics = points.iter().filter_map(|p| Metric::new(&p.key, p.value, p.timestamp_ms, p.step).ok());
        for batch in batches(metrics.collect(), Vec::new()) {
            let left_out = self.client.log_batch(&run.id, &batch)?;
            self.points += (batch.len() - left_out.len()) as u64;
            self.refused.add(left_out);
        }
        Ok(())
    }
}
