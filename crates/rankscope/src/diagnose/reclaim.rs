//! What the kernel does to a cgroup that is short of memory: counters that no series has.

use rankscope_core::cgroup::Version;
use rankscope_core::diagnose::observations::Container;
use rankscope_core::parse::keyed::{Field, lookup};

use super::context::{Context, Kept};
use super::slots::{Rate, put};
use crate::sources::cgroup::{Cgroups, path};

pub struct Reclaim {
    stat: Kept,
    events: Kept,
    v1: bool,
    refaults: Rate,
    swapped_in: Rate,
    high: Rate,
}

impl Reclaim {
    pub fn new(cx: &mut Context, cgroups: &Cgroups) -> Option<Reclaim> {
        let place = cgroups.memory.as_ref().ok().filter(|place| place.container.is_ok())?;
        let file = |name: &str| path(place.own(), name);
        Some(Reclaim {
            stat: cx.keep(file("memory.stat")),
            events: cx.keep(file("memory.events")),
            v1: place.version == Version::V1,
            refaults: Rate::default(),
            swapped_in: Rate::default(),
            high: Rate::default(),
        })
    }

    pub fn read(&mut self, cx: &mut Context, slot: usize, into: &mut Container) {
        // One counter before Linux 5.9.
        let keys = match self.v1 {
            true => {
                ["total_workingset_refault_file", "total_workingset_refault_anon", "total_workingset_refault"]
            }
            false => ["workingset_refault_file", "workingset_refault_anon", "workingset_refault"],
        };
        let [file, anon, both, swapped] = self
            .stat
            .read(cx, |text| {
                let [file, anon, both] = lookup(text, keys).map(Field::value);
                let [swapped] = lookup(text, ["pswpin"]).map(Field::value);
                Some([file, anon, both, swapped])
            })
            .ok()
            .flatten()
            .unwrap_or_default();
        let at_s = cx.clock.now_s();
        let refaults = both.or_else(|| Some(file? + anon.unwrap_or(0)));
        into.page_bytes = u32::try_from(cx.machine.units.page_size).ok();
        put(&mut into.refaults, slot, self.refaults.next(refaults, at_s));
        put(&mut into.swapped_in, slot, self.swapped_in.next(swapped, at_s));
        if !self.v1 {
            let high =
                self.events.read(cx, |text| Some(lookup(text, ["high"])[0].value())).ok().flatten().flatten();
            put(&mut into.memory_high, slot, self.high.next(high, at_s));
        }
    }
}
