//! Of the time that counts: how much went to what.

use std::collections::BTreeMap;

use super::doing::Doing;

#[derive(Clone, Debug, Default)]
pub struct Shares {
    weight: BTreeMap<Doing, f64>,
    total: f64,
    pub samples: u64,
    /// From Python stacks; else from the kernel's view alone.
    pub by_stacks: bool,
}

impl Shares {
    pub fn add(&mut self, doing: Doing, weight: f64) {
        if weight > 0.0 {
            *self.weight.entry(doing).or_default() += weight;
            self.total += weight;
        }
    }

    pub fn known(&self) -> bool {
        self.total > 0.0
    }

    pub fn of(&self, all: &[Doing]) -> f64 {
        if self.total <= 0.0 {
            return 0.0;
        }
        all.iter().filter_map(|doing| self.weight.get(doing)).fold(0.0, |sum, weight| sum + weight)
            / self.total
    }

    pub fn all(&self) -> Vec<(Doing, f64)> {
        self.weight.iter().map(|(doing, weight)| (*doing, weight / self.total)).collect()
    }

    pub fn most(&self) -> Option<(Doing, f64)> {
        let most = self.weight.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        Some((*most.0, most.1 / self.total))
    }
}
