//! Whatever the kernel, a sandbox or a hostile file shows: no parser and no resolver panics, and what they give keeps
//! its promises.

use proptest::prelude::*;
use rankscope_core::cgroup::{self, Controller};
use rankscope_core::identity;
use rankscope_core::interfaces::{self, Interface, Netdev};
use rankscope_core::parse::{
    block_io, cgroup_file, cpu_list, keyed, limit, mountinfo, net_dev, node, number, pid, pressure, single,
};
use rankscope_core::series::Scope;
use rankscope_core::trend::Trend;

/// Bytes, and texts that nearly have the form of kernel files, which reach further into a parser.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let words = prop_oneof![
        "[a-z_]{1,12}",
        "[0-9]{1,22}",
        Just("max".to_owned()),
        Just("-1".to_owned()),
        Just("cpu".to_owned()),
        Just("total=".to_owned()),
        Just("8:0".to_owned()),
        Just("0::/..".to_owned()),
        Just("4:memory:/a".to_owned()),
        Just("eth0:".to_owned()),
        Just("(x) y)".to_owned()),
        Just("-".to_owned()),
        Just("/a\\040b".to_owned()),
        Just("cgroup2".to_owned()),
        Just("rw,memory,cpu".to_owned()),
    ];
    let lines = prop::collection::vec(prop::collection::vec(words, 0..14), 0..12);
    let shaped =
        lines.prop_map(|lines| lines.iter().map(|l| l.join(" ")).collect::<Vec<_>>().join("\n").into_bytes());
    prop_oneof![prop::collection::vec(any::<u8>(), 0..600), shaped]
}

fn path() -> impl Strategy<Value = String> {
    let part =
        prop_oneof![Just("..".to_owned()), "[a-z.]{1,8}", Just("user.slice".to_owned()), Just(String::new())];
    prop::collection::vec(part, 0..5).prop_map(|parts| format!("/{}", parts.join("/")))
}

proptest! {
    #[test]
    fn parsers_take_any_bytes(text in text()) {
        let _ = single(&text);
        let _ = number(&text);
        let _ = keyed::lookup(&text, ["anon", "file", "total_cache", "MemTotal:"]);
        let _ = limit::bytes(&text);
        let _ = limit::cfs_quota(&text);
        if let Ok(Some(cores)) = limit::cpu_max(&text) {
            prop_assert!(cores.is_finite() && cores > 0.0);
        }
        let _ = node::cpu_times(&text).map(|t| t.busy());
        let _ = node::online_cpus(&text);
        let _ = node::meminfo(&text);
        let _ = node::uptime(&text).map(|s| assert!(s.is_finite() && s >= 0.0));
        let _ = node::loadavg(&text).map(|l| assert!(l.one_minute.is_finite()));
        let _ = pressure::parse(&text);
        let _ = pid::stat(&text);
        let _ = pid::status(&text);
        let _ = pid::io(&text);
        let _ = pid::smaps_rollup(&text);
        let _ = pid::cpus_allowed(&text);
        let _ = cpu_list::parse(&text).map(|set| set.count());
        let _ = net_dev::parse(&text);
        let mut devices = Vec::new();
        block_io::io_stat(&text, &mut devices);
        block_io::io_service_bytes(&text, &mut devices);
    }

    #[test]
    fn the_resolver_takes_any_files(cgroups in text(), mounts in text()) {
        let memberships = cgroup_file::parse(&cgroups);
        let mounts = mountinfo::parse(&mounts);
        let _ = cgroup::layout(&mounts);
        for controller in Controller::ALL {
            let _ = cgroup::locate(&memberships, &mounts, controller);
        }
        let _ = mountinfo::reachable(&mounts);
        let _ = mountinfo::holding(&mounts, "/a/b");
        let _ = identity::sandbox("", &mounts);
    }

    /// Levels go from the process's cgroup up to the root of the mount, one component at a time, and every directory
    /// lies in the mount.
    #[test]
    fn levels_form_a_path(path in path(), root in path(), v2 in any::<bool>()) {
        let (line, mount) = if v2 {
            (format!("0::{path}\n"), format!("1 0 0:1 {root} /cg rw - cgroup2 cgroup2 rw\n"))
        } else {
            (format!("4:memory:{path}\n"), format!("1 0 0:1 {root} /cg rw - cgroup cgroup rw,memory\n"))
        };
        let memberships = cgroup_file::parse(line.as_bytes());
        let mounts = mountinfo::parse(mount.as_bytes());
        if let Ok(hierarchy) = cgroup::locate(&memberships, &mounts, Controller::Memory) {
            prop_assert!(!hierarchy.levels.is_empty());
            for level in &hierarchy.levels {
                prop_assert!(mountinfo::is_below(&level.dir, "/cg"), "{level:?}");
                prop_assert!(!level.dir.contains("/../"), "{level:?}");
            }
            for pair in hierarchy.levels.windows(2) {
                prop_assert!(mountinfo::is_below(&pair[0].dir, &pair[1].dir), "{pair:?}");
                prop_assert!(pair[0].dir != pair[1].dir, "{pair:?}");
            }
            prop_assert_eq!(hierarchy.levels.last().map(|l| l.dir.as_str()), Some("/cg"));
        }
    }

    #[test]
    fn a_number_is_what_was_printed(value in any::<u64>()) {
        prop_assert_eq!(single(format!("{value}\n").as_bytes()), Ok(value));
        let expected = (value < (1 << 63) - (1 << 20)).then_some(value);
        prop_assert_eq!(limit::bytes(value.to_string().as_bytes()), Ok(expected));
    }

    #[test]
    fn a_cpu_list_counts_its_cpus(first in 0u32..5000, length in 0u32..200, single in 6000u32..7000) {
        let set = cpu_list::parse(format!("{first}-{},{single}\n", first + length).as_bytes());
        prop_assert_eq!(set.map(|s| s.count()), Some(length + 2));
    }

    #[test]
    fn loopback_never_counts(names in prop::collection::vec("[a-z]{1,6}[0-9]?", 0..8), node in any::<bool>()) {
        let all: Vec<Interface> = names.iter().map(|n| n.as_str()).chain(["lo"])
            .map(|n| Interface { name: n.to_owned(), physical: n.starts_with("eth"), ..Interface::default() }).collect();
        let scope = if node { Scope::Node } else { Scope::Pod };
        let counted = interfaces::counted(scope, &all);
        prop_assert_eq!(counted.len(), all.len());
        for (interface, counted) in all.iter().zip(&counted) {
            prop_assert!(!(interface.name == "lo" && *counted));
        }
        let _ = interfaces::scope(Netdev::Unknown, &all);
    }

    #[test]
    fn a_trend_is_finite_or_missing(points in prop::collection::vec((any::<u32>(), any::<u64>()), 0..80), limit in any::<u64>()) {
        let mut trend = Trend::default();
        for (at, bytes) in points {
            trend.add(u64::from(at) * 1_000_000_000, bytes);
            if let Ok(seconds) = trend.seconds_to(limit) {
                prop_assert!(seconds.is_finite() && seconds >= 0.0);
            }
        }
    }
}
