//! The node's disks: sums over those that count.

use super::{Interval, devices, megabytes, miss, put};
use crate::reading::Readings;
use crate::sample::DiskBytes;
use crate::series;

pub(super) fn rates(interval: &Interval<'_>, out: &mut Readings) {
    let disks = &interval.current.disks;
    let now = match &disks.value {
        Ok(now) => now,
        Err(gap) => {
            return [
                &series::NODE_DISK_READ,
                &series::NODE_DISK_WRITE,
                &series::NODE_DISK_READ_RATE,
                &series::NODE_DISK_WRITE_RATE,
            ]
            .into_iter()
            .for_each(|s| miss(out, s, gap));
        }
    };
    let sum = |count: fn(&DiskBytes) -> u64| now.iter().map(count).fold(0, u64::saturating_add);
    put(out, &series::NODE_DISK_READ, Ok(megabytes(sum(|d| d.read))), &disks.origin);
    put(out, &series::NODE_DISK_WRITE, Ok(megabytes(sum(|d| d.write))), &disks.origin);
    let rates = devices::per_second(interval, |s| &s.disks, |d| (&d.name, d.read, d.write));
    put(out, &series::NODE_DISK_READ_RATE, rates.clone().map(|(read, _)| read), &disks.origin);
    put(out, &series::NODE_DISK_WRITE_RATE, rates.map(|(_, write)| write), &disks.origin);
}
