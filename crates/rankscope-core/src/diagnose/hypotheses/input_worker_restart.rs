//! Workers are started again and again, as at every epoch, and the GPU waits for them.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::facts::workers::is_young;
use super::super::observations::Process;
use super::super::series::Measure;
use super::super::thresholds as t;
use super::case::{Case, percent};

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("input_worker_restart", facts);
    let Some(rank) = facts.rank() else {
        case.missing.push("processes".into());
        return case;
    };
    let generations = generations(rank);
    let count = Measure { value: generations, samples: facts.grid.slots as u64 };
    let again = case.at_least("workers.generations_born_in_the_window", Some(count), 2.0);
    let starting = starting(facts);
    let waits = case.at_least("main_thread.waits_for_new_workers_share", starting, t::SECOND_SHARE);
    let wall = starting.map(|m| m.map(|v| v * facts.lost().value));
    let costs = case.at_least("window.share_spent_starting_workers", wall, t::RESTART);
    case.all(&[again, waits, costs]);
    case.explains(starting.map_or(0.0, |m| m.value), facts);
    let members = at_once(rank);
    case.reason = match generations as usize {
        0 => "no worker was started in the window".into(),
        n => format!(
            "{members} worker{} started {n} times in {:.0} s; {} of the lost time went by until they delivered",
            if members == 1 { " was" } else { "s were" },
            facts.window(),
            percent(case.share)
        ),
    };
    case.remedy("persistent_workers=True", "workers stay from epoch to epoch");
    case.remedy("less to import and to copy at a worker's start; fork or forkserver instead of spawn where that is safe", "each start is shorter");
    case
}

/// How often as many workers were born in the window as there are at a time.
fn generations(rank: &RankFacts) -> f64 {
    let born = |p: &&&Process| p.started_s > 0.0;
    let groups = rank.workers.iter().filter(|g| g.born_s > 0.0).count() as f64;
    let members: Vec<&Process> = rank.workers.iter().flat_map(|g| &g.members).copied().collect();
    groups.max((members.iter().filter(born).count() / at_once(rank).max(1)) as f64)
}

/// The most workers that lived at one moment, which is that of a birth.
fn at_once(rank: &RankFacts) -> usize {
    let members: Vec<&Process> = rank.workers.iter().flat_map(|g| &g.members).copied().collect();
    let alive = |p: &Process, at: f64| p.started_s <= at && p.ended_s.is_none_or(|end| end > at);
    members.iter().map(|one| members.iter().filter(|p| alive(p, one.started_s)).count()).max().unwrap_or(0)
}

/// Lost time in which the main thread starts workers or waits, while some worker is new.
fn starting(facts: &Facts) -> Option<Measure> {
    let rank = facts.rank()?;
    if !rank.doing.by_stacks {
        return None;
    }
    let young = |slot: usize| {
        let at = (slot as f64 + 0.5) * facts.grid.seconds;
        rank.workers
            .iter()
            .flat_map(|g| &g.members)
            .any(|p| is_young(p, at) && p.ended_s.is_none_or(|e| e > at))
    };
    let starts =
        |doing: Doing| matches!(doing, Doing::Data | Doing::Spawn | Doing::Child | Doing::NativeWait);
    let (mut inside, mut all, mut samples) = (0.0, 0.0, 0);
    for s in &rank.sampled {
        all += s.counts(&rank.weight);
        samples += 1;
        if s.doing == Doing::Spawn || starts(s.doing) && young(s.slot) {
            inside += s.counts(&rank.weight);
        }
    }
    (all > 0.0).then(|| Measure { value: inside / all, samples })
}
