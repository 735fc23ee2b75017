//! One rank is late, and the others wait for it.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::stacks;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::{Case, percent};
use super::ranks;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("straggler", facts);
    let samples = facts.grid.slots as u64;
    if facts.ranks.len() < 2 {
        case.at_least("ranks", Some(Measure { value: facts.ranks.len() as f64, samples: 1 }), 2.0);
        case.all(&[Some(false)]);
        case.reason = "one rank is seen here".into();
        return case;
    }
    let least = ranks::least_waiting(facts);
    let others = least.as_ref().map(|l| Measure { value: l.others, samples });
    let wait = case.at_least("ranks.wait_for_others_share", others, t::SECOND_SHARE);
    let ratio =
        least.as_ref().filter(|l| l.others > 0.0).map(|l| Measure { value: l.waits / l.others, samples });
    let late = match wait {
        Some(true) => case.below("late_rank.wait_share_of_the_others", ratio, t::STRAGGLER),
        other => other,
    };
    case.all(&[wait, late]);
    let Some(least) = least else {
        case.reason = "nobody can tell how long the ranks wait for each other".into();
        return case;
    };
    let rank = &facts.ranks[least.index];
    case.wall = least.others;
    case.share = (least.others / facts.lost().value.max(least.others)).clamp(0.0, 1.0);
    case.reason = match ranks::late(facts) {
        Some(_) => format!(
            "{} is late: it waits for others in {} of the time, they in {}{}",
            rank.name,
            percent(least.waits),
            percent(least.others),
            what_it_does(facts, least.index)
        ),
        None => format!("the ranks wait for each other alike ({} of the time)", percent(least.others)),
    };
    case.remedy(
        &format!("look at {}: what it does and the others don't", rank.name),
        "all ranks are as slow as the slowest",
    );
    case.remedy("spread the work evenly (batches by length, validation and logging on all ranks or in the background)", "nobody waits");
    case
}

fn what_it_does(facts: &Facts, index: usize) -> String {
    let rank = &facts.ranks[index];
    let active = [Doing::Python, Doing::Native, Doing::OnCpu, Doing::Sleep, Doing::Disk, Doing::Data];
    stacks::hot(&rank.sampled, &rank.weight, &active)
        .filter(|hot| hot.share >= t::MAIN_SHARE)
        .map(|hot| format!("; its main thread ran {}", super::super::words::place(&hot)))
        .unwrap_or_default()
}
