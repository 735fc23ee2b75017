//! The serialising thread: which of its functions the lost time went to.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::stacks::{self, Hot};
use super::super::words;
use super::case::percent;

pub fn hot<'a>(facts: &Facts<'a>, kinds: &[Doing]) -> Option<Hot<'a>> {
    let rank = facts.rank()?;
    stacks::hot(&rank.sampled, &rank.weight, kinds)
}

pub fn reason(facts: &Facts, kinds: &[Doing], share: f64) -> String {
    match hot(facts, kinds) {
        Some(hot) => {
            let same = all_ranks_alike(facts, &hot);
            format!("in {} of that time the main thread ran {}{same}", percent(hot.share), words::place(&hot))
        }
        None => format!("the main thread was on a CPU in {} of that time", percent(share)),
    }
}

/// Every rank spends its lost time in the same function.
fn all_ranks_alike(facts: &Facts, hot: &Hot) -> String {
    let n = facts.ranks.len();
    let same = facts.ranks.iter().filter(|r| {
        let other = stacks::hot(&r.sampled, &r.weight, &[Doing::Python, Doing::Native, Doing::OnCpu]);
        other.is_some_and(|o| o.frame.function == hot.frame.function && o.frame.file == hot.frame.file)
    });
    if n > 1 && same.count() == n {
        format!(", and all {n} ranks repeat the same CPU work")
    } else {
        String::new()
    }
}

/// Whether idleness is a GPU's answer, or there is no GPU at all. With a GPU that doesn't say, a main thread on a CPU is
/// what every healthy run has.
pub fn can_be_blamed(facts: &Facts) -> Option<bool> {
    (facts.gpu_known() || facts.without_gpu()).then_some(true)
}
