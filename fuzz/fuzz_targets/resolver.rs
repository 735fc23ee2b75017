//! /proc/<pid>/cgroup together with mountinfo, separated by a NUL: for each controller the visible levels.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rankscope_core::cgroup::{self, Controller};
use rankscope_core::parse::mountinfo::is_below;
use rankscope_core::parse::{cgroup_file, mountinfo};

fuzz_target!(|input: &[u8]| {
    let at = input.iter().position(|b| *b == 0).unwrap_or(input.len());
    let (cgroups, mounts) = input.split_at(at);
    let memberships = cgroup_file::parse(cgroups);
    let mounts = mountinfo::parse(mounts.strip_prefix(b"\0").unwrap_or(mounts));
    let _ = cgroup::layout(&mounts);
    let found = Controller::ALL.map(|c| cgroup::locate(&memberships, &mounts, c));
    for hierarchy in found.into_iter().chain([cgroup::locate_unified(&memberships, &mounts)]).flatten() {
        let levels = &hierarchy.levels;
        assert!(!levels.is_empty());
        let top = &levels[levels.len() - 1].dir;
        assert!(mounts.iter().any(|m| m.mount_point.trim_end_matches('/') == top.trim_end_matches('/')));
        for level in levels {
            // Never out of the mount.
            let below = level.dir.strip_prefix(top.as_str()).unwrap();
            assert!(below.split('/').all(|part| part != ".."), "{level:?}");
            let _ = cgroup::is_login_scope(&level.path);
        }
        for pair in levels.windows(2) {
            assert!(is_below(&pair[0].dir, &pair[1].dir) && pair[0].dir != pair[1].dir, "{pair:?}");
        }
    }
});
