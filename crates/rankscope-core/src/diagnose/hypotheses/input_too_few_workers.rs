//! The workers are busy throughout, and CPUs are free.

use super::super::facts::Facts;
use super::case::{Case, percent};
use super::input;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("input_too_few_workers", facts);
    let [waits, busy] = input::busy_workers(&mut case, facts);
    let free = case.at_least("container.spare_cores", input::spare(facts), input::needed_spare(facts));
    case.all(&[waits, busy, free]);
    case.explains(input::cpu_part(facts), facts);
    let spare = input::spare(facts).map_or(0.0, |m| m.value.max(0.0));
    case.reason = format!(
        "the main thread waited for data in {} of that time; {}, and {spare:.1} cores are free",
        percent(input::wait_share(facts)),
        input::words(facts)
    );
    case.remedy(
        &format!("more loader workers (num_workers): about {} more fit", spare.floor().max(1.0)),
        "the workers are busy throughout, and CPUs are free",
    );
    case.remedy(
        "a larger prefetch_factor and persistent_workers evens out slow samples",
        "only where waits are short and uneven",
    );
    case
}
