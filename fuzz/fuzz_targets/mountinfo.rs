//! /proc/<pid>/mountinfo: its lines, which mounts are reachable, and what identities are made of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rankscope_core::identity;
use rankscope_core::parse::mountinfo::{Mount, holding, is_below, parse, reachable};

/// The definition, word for word and slow.
fn is_reachable(mounts: &[Mount], at: usize) -> bool {
    let m = &mounts[at];
    let mut ancestors = Vec::new();
    let mut parent = m.parent;
    while let Some(up) = mounts.iter().find(|p| p.id == parent).filter(|p| !ancestors.contains(&p.id)) {
        ancestors.push(up.id);
        parent = up.parent;
    }
    let covers =
        |later: &Mount| is_below(&m.mount_point, &later.mount_point) && !ancestors.contains(&later.id);
    !mounts[at + 1..].iter().any(covers)
}

/// Mounts as a kernel lists them: every id once, each on one that stands before it, stacks in their order.
fn sound(mounts: &[Mount]) -> bool {
    mounts.iter().enumerate().all(|(at, m)| {
        let before = &mounts[..at];
        let stacked_on = before.iter().rev().find(|b| b.mount_point == m.mount_point);
        let plain = m.mount_point == "/" || !(m.mount_point.ends_with('/') || m.mount_point.contains("//"));
        plain
            && before.iter().all(|b| b.id != m.id)
            && (at == 0 && m.parent != m.id || before.iter().any(|b| b.id == m.parent))
            && mounts.iter().skip(at).all(|later| later.id != m.parent)
            && stacked_on.is_none_or(|b| b.id == m.parent)
    })
}

fuzz_target!(|text: &[u8]| {
    let mounts = parse(text);
    let found = reachable(&mounts);
    if mounts.len() < 40 && sound(&mounts) {
        for (at, m) in mounts.iter().enumerate() {
            let expected = is_reachable(&mounts, at);
            assert_eq!(found.iter().any(|f| f.id == m.id), expected, "{m:?} of {mounts:?}");
        }
    }
    for path in ["/", "/proc/stat", "/sys/fs/cgroup/memory", "/a b"] {
        if let Some(m) = holding(&mounts, path) {
            assert!(is_below(path, &m.mount_point));
            let _ = identity::rootfs(Some("b"), m, 4096, 100);
            let _ = identity::mount(None, m);
        }
        let _ = identity::covered_by(&mounts, path);
    }
    let _ = identity::sandbox("Linux version 4.4.0", &mounts);
});
