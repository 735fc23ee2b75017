//! What the training marks, read beside its own recorder.

use std::path::Path;
use std::sync::Arc;

use rankscope_core::diagnose::observations::{Mark, Process};

use super::variables::Variables;
use crate::marks::{self, Reader, Ring};

/// A window can be long, and phases short.
const MOST: usize = 20_000;

pub struct Marking {
    start_boottime_ns: u64,
    rings: Vec<Followed>,
    marks: Vec<(Mark, Option<u32>)>,
    /// Beyond `MOST`.
    pub lost: u64,
}

/// The marks of the processes below one recorder.
struct Followed {
    path: String,
    /// Processes that were started with it.
    pids: Vec<u32>,
    reader: Reader,
    last: (Option<i64>, Option<i64>),
}

impl Marking {
    pub fn new(start_boottime_ns: u64) -> Marking {
        Marking { start_boottime_ns, rings: Vec::new(), marks: Vec::new(), lost: 0 }
    }

    pub fn follow(&mut self, pid: u32, variables: &Variables) {
        let Some(path) = variables.get(marks::ENVIRONMENT) else { return };
        if let Some(known) = self.rings.iter_mut().find(|f| f.path == path) {
            known.pids.push(pid);
        } else if let Ok(ring) = Ring::open(Path::new(path)) {
            let reader = Reader::new(Arc::new(ring));
            self.rings.push(Followed { path: path.to_owned(), pids: vec![pid], reader, last: (None, None) });
        }
    }

    pub fn read(&mut self, at_s: f64) {
        for followed in &mut self.rings {
            let read = followed.reader.read();
            for change in read.phases {
                let ns = change.boottime_ns as f64 - self.start_boottime_ns as f64;
                let phase = Some(change.begun.unwrap_or_default());
                let mark = Mark { at_s: ns / 1e9, rank: None, step: change.step, epoch: change.epoch, phase };
                self.marks.push((mark, Some(change.pid)));
            }
            let now = (read.step, read.epoch);
            let first = followed.last == (None, None);
            if std::mem::replace(&mut followed.last, now) != now && !first {
                let mark = Mark { at_s, rank: None, step: now.0, epoch: now.1, phase: None };
                let one = followed.pids.first().filter(|_| followed.pids.len() == 1);
                self.marks.push((mark, one.copied()));
            }
        }
        let over = self.marks.len().saturating_sub(MOST);
        self.lost += over as u64;
        self.marks.truncate(MOST);
    }

    /// Of one rank that marks nobody else can be meant.
    pub fn finish(self, processes: &[Process], ranks: usize) -> Vec<Mark> {
        let rank_of = |pid: Option<u32>| match (ranks, pid) {
            (1, _) => Some(0),
            (_, Some(pid)) => processes.iter().find(|p| p.pid == pid)?.rank,
            _ => None,
        };
        let mut marks: Vec<Mark> =
            self.marks.into_iter().map(|(mark, pid)| Mark { rank: rank_of(pid), ..mark }).collect();
        marks.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        marks
    }
}
