//! The workers do all they can with the CPUs there are, and it isn't enough.

use super::super::facts::Facts;
use super::case::{Case, percent};
use super::input;

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("input_workers_saturated", facts);
    let [waits, busy] = input::busy_workers(&mut case, facts);
    let full = case.below("container.spare_cores", input::spare(facts), input::needed_spare(facts));
    case.all(&[waits, busy, full]);
    case.explains(input::cpu_part(facts), facts);
    case.reason = format!(
        "the main thread waited for data in {} of that time; {}; no CPU is left for more",
        percent(input::wait_share(facts)),
        input::words(facts)
    );
    case.remedy("make each sample cheaper: decode and resize once and store the result, faster decoders, augmentation on the GPU", "the workers need all the CPU there is");
    case.remedy(
        "raise the container's CPU limit, with as many workers",
        "preparing samples is what is short",
    );
    case
}
