//! Rates of counters that several devices keep: interfaces, ports, disks.

use std::collections::HashMap;

use super::{Interval, first_sample, megabytes, same_thing};
use crate::gap::{Gap, Measured, Reason};
use crate::sample::{Raw, Sample};

/// Name of a device, and the bytes that came in and went out by it.
pub(super) type Counters<'a> = (&'a str, u64, u64);

/// Megabytes per second in and out, summed over the devices. One that is new or was made anew (either counter fell) is
/// left out for the interval.
pub(super) fn per_second<T>(
    interval: &Interval<'_>,
    pick: impl Fn(&Sample) -> &Raw<Vec<T>>,
    counters: impl Fn(&T) -> Counters<'_>,
) -> Measured<(f64, f64)> {
    let Raw { value, origin, read_ns } = pick(interval.current);
    let now = value.as_ref().map_err(Clone::clone)?;
    let then = pick(interval.previous.ok_or_else(first_sample)?);
    if !same_thing(&then.origin, origin) {
        return Err(Gap::new(Reason::FirstSample, format!("{} is another's than before", origin.source)));
    }
    let seconds = interval.between(then.read_ns, *read_ns);
    let then = then.value.as_ref().map_err(|_| first_sample())?;
    let then: HashMap<&str, (u64, u64)> =
        then.iter().map(&counters).map(|(name, inward, outward)| (name, (inward, outward))).collect();
    let mut sum = (0u64, 0u64);
    let mut counted = 0;
    for (name, inward, outward) in now.iter().map(&counters) {
        let Some(old) = then.get(name) else { continue };
        if let (Some(inward), Some(outward)) = (inward.checked_sub(old.0), outward.checked_sub(old.1)) {
            sum = (sum.0.saturating_add(inward), sum.1.saturating_add(outward));
            counted += 1;
        }
    }
    if counted == 0 && !now.is_empty() {
        let detail = format!("{}: everything in it is new or was made anew", origin.source);
        return Err(Gap::new(Reason::FirstSample, detail));
    }
    Ok((megabytes(sum.0) / seconds, megabytes(sum.1) / seconds))
}
