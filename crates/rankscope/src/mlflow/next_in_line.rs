//! The next in line watches one key of the one that writes: three windows without a new point, and it takes over.

use std::time::{Duration, Instant};

use super::client::{Client, HistoryQuery};
use super::error::Error;

const PAGE: u32 = 1000;
const SILENT_WINDOWS: u32 = 3;

#[derive(Debug)]
pub struct NextInLine {
    /// Who writes.
    pub writer: u32,
    /// What it writes and we could.
    pub identities: Vec<String>,
    key: String,
    /// Where the history went on when it was read last.
    page: Option<String>,
    newest_ms: i64,
    since: Instant,
}

impl NextInLine {
    pub fn new(writer: u32, identities: Vec<String>, key: String) -> NextInLine {
        NextInLine { writer, identities, key, page: None, newest_ms: i64::MIN, since: Instant::now() }
    }

    /// Reads what has come since the last time. `Some`: the writer is silent since that point. `window`: time between
    /// two points.
    pub fn look(
        &mut self,
        client: &mut Client,
        run_id: &str,
        window: Duration,
    ) -> Result<Option<i64>, Error> {
        loop {
            let page_token = self.page.clone();
            let query = HistoryQuery { run_id, key: &self.key, max_results: PAGE, page_token };
            let page = client.metric_history_page(&query)?;
            let newest = page.items.iter().map(|point| point.timestamp_ms).max();
            if let Some(newest) = newest.filter(|newest| *newest > self.newest_ms) {
                (self.newest_ms, self.since) = (newest, Instant::now());
            }
            match page.next {
                Some(next) => self.page = Some(next),
                None => break,
            }
        }
        let is_silent = self.since.elapsed() >= window * SILENT_WINDOWS;
        Ok(is_silent.then_some(self.newest_ms))
    }
}
