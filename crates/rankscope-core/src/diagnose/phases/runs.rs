//! Slots in a row that look the same, short ones joined to their neighbours.

use super::super::thresholds as t;
use super::{Grid, Look};

#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub look: Look,
    pub from: usize,
    pub to: usize,
    /// Joined from runs that looked different.
    pub mixed: bool,
}

impl Run {
    fn len(&self) -> usize {
        self.to - self.from
    }
}

pub fn cut(looks: &[Look], grid: Grid) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (slot, &look) in looks.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.look == look => run.to = slot + 1,
            _ => runs.push(Run { look, from: slot, to: slot + 1, mixed: false }),
        }
    }
    // Slots of seconds are means already.
    let slots = if grid.seconds > 1.5 { 1 } else { (t::MIN_PHASE_S / grid.seconds).ceil().max(2.0) as usize };
    for shorter_than in 2..=slots {
        swallow(&mut runs, shorter_than);
    }
    runs
}

/// Gives every run that is shorter to the longer of its neighbours; still shorter ones were given away before.
fn swallow(runs: &mut Vec<Run>, shorter_than: usize) {
    let mut kept: Vec<Run> = Vec::with_capacity(runs.len());
    let mut rest = runs.iter().copied().peekable();
    while let Some(mut run) = rest.next() {
        if run.len() < shorter_than {
            let before = kept.last().map_or(0, Run::len);
            match rest.peek().copied().filter(|next| next.len() > before) {
                Some(next) => {
                    run = Run { look: next.look, from: run.from, to: next.to, mixed: true };
                    rest.next();
                }
                None => {
                    run = Run { look: kept.last().map_or(run.look, |last| last.look), mixed: true, ..run }
                }
            }
        }
        push(&mut kept, run);
    }
    *runs = kept;
}

/// Neighbours that look the same are one.
pub fn join(runs: Vec<Run>) -> Vec<Run> {
    let mut joined = Vec::with_capacity(runs.len());
    runs.into_iter().for_each(|run| push(&mut joined, run));
    joined
}

fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut().filter(|last| last.look == run.look) {
        Some(last) => {
            last.to = run.to;
            last.mixed |= run.mixed;
        }
        None => runs.push(run),
    }
}
