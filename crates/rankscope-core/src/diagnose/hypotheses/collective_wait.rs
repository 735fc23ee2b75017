//! The ranks wait in collectives: full utilisation at low power.

use super::super::facts::Facts;
use super::super::series::{Measure, mean};
use super::super::thresholds as t;
use super::case::{Case, percent};
use super::ranks;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("collective_wait", facts);
    let in_company = facts.ranks.len() > 1 || facts.seen.ranks.iter().any(|r| r.rank.is_some_and(|n| n > 0));
    if !in_company {
        case.at_least("ranks", Some(Measure { value: facts.ranks.len() as f64, samples: 1 }), 2.0);
        case.all(&[Some(false)]);
        case.reason = "one rank is seen here".into();
        return case;
    }
    let waits =
        ranks::waits_on_average(facts).map(|value| Measure { value, samples: facts.grid.slots as u64 });
    let long = case.at_least("ranks.wait_for_others_share", waits, t::SECOND_SHARE);
    case.all(&[long]);
    let share = waits.map_or(0.0, |m| m.value);
    case.wall = share;
    case.share = share;
    let network = [&facts.seen.network.rdma, &facts.seen.network.transmit].into_iter().find_map(mean);
    let network = network.map(|m| format!("; the network carried {:.0} MB/s", m.value)).unwrap_or_default();
    case.reason = match ranks::late(facts) {
        Some(late) => format!(
            "the others wait for {} in {} of the time",
            facts.ranks[late.index].name,
            percent(late.others)
        ),
        None => format!(
            "the ranks waited in collectives in {} of the time, none of them less{network}",
            percent(share)
        ),
    };
    case.remedy("overlap communication and computing (bucket size, gradient_as_bucket_view), accumulate gradients over more steps", "the network is used while the GPU works");
    case.remedy(
        "look at the network between the nodes: NCCL_DEBUG=INFO says which transport is used",
        "TCP instead of InfiniBand costs most",
    );
    case
}
