//! What is known about the very code that the lost time went to.

use std::collections::HashMap;

use super::Catalogue;
use super::facts::Facts;
use super::facts::stacks;
use super::findings::Remedy;
use super::observations::Frame;

/// Stacks that the catalogue is asked about, the heaviest first.
const ASKED: usize = 60;
/// Share of the lost time from which a remedy is worth giving.
const WORTH: f64 = 0.1;

/// Many stacks can pass through the same code: a remedy counts with all of them together, in shares of all time.
pub fn of(facts: &Facts, catalogue: Catalogue) -> Vec<Remedy> {
    let Some(rank) = facts.rank() else { return Vec::new() };
    let top = stacks::top(&rank.sampled, &rank.weight, ASKED);
    let mut order: Vec<(String, &[&Frame])> = Vec::new();
    let mut shares: HashMap<String, f64> = HashMap::new();
    for stacks::Top { frames, share, .. } in &top {
        for remedy in catalogue(frames, *share) {
            if !shares.contains_key(&remedy.action) {
                order.push((remedy.action.clone(), frames));
            }
            *shares.entry(remedy.action).or_default() += share;
        }
    }
    let worth = order.into_iter().filter_map(|(action, frames)| {
        let share = shares.get(&action).copied().filter(|share| *share >= WORTH)?;
        let of_all_time = (share * facts.lost().value).clamp(0.0, 1.0);
        catalogue(frames, of_all_time).into_iter().find(|remedy| remedy.action == action)
    });
    worth.collect()
}
