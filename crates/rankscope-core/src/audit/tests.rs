//! Audit: the sizes of a real case, and what must not be claimed.

use super::*;

const NODE: f64 = 540_576.0;

fn history(key: &str, values: impl IntoIterator<Item = f64>) -> History {
    let points =
        values.into_iter().zip(0i64..).map(|(value, n)| Point { value, timestamp_ms: 10_000 * n, step: n });
    History { key: key.to_owned(), points: points.collect() }
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Memory as MLflow's monitor logs it: both numbers rounded to one decimal.
fn memory(prefix: &str, total: f64, usages: &[f64]) -> Vec<History> {
    vec![
        history(&format!("system/{prefix}system_memory_usage_megabytes"), usages.iter().map(|u| rounded(*u))),
        history(
            &format!("system/{prefix}system_memory_usage_percentage"),
            usages.iter().map(|u| rounded(u / total * 100.0)),
        ),
    ]
}

fn ramp(n: u32, last: f64) -> Vec<f64> {
    (0..n).map(|i| last - 1_234.567 * f64::from(n - 1 - i)).collect()
}

fn size(value: f64) -> Option<Size> {
    Some(Size { value, from: "--option".into(), measured: false })
}

fn finding<'a>(report: &'a Report, key: &str) -> &'a Finding {
    report.findings.iter().find(|f| f.key == key).unwrap()
}

#[test]
fn a_node_is_not_your_container() {
    let mut series = memory("", NODE, &ramp(60, 132_688.0));
    series.push(history("system/cpu_utilization_percentage", [12.6, 12.7, 12.8]));
    let known = Known {
        memory_limit: size(68_719_476_736.0),
        cpu_limit: size(8.0),
        node_cores: size(144.0),
        ..Known::default()
    };
    let report = audit(&series, known);
    for key in ["system/system_memory_usage_megabytes", "system/system_memory_usage_percentage"] {
        let found = finding(&report, key);
        assert_eq!((found.measures, found.points), (Measures::Node, 60));
        let implied = found.implied.unwrap();
        let (low, high) = implied.range.unwrap();
        assert!(low <= NODE && NODE <= high && implied.width().unwrap() < 0.001, "{low} {high}");
        assert!(implied.p05 <= implied.median && implied.median <= implied.p95);
    }
    let verdict = &finding(&report, "system/system_memory_usage_megabytes").verdict;
    assert!(verdict.starts_with("usage 132,688 MB is 24.5 % of 540,5"), "{verdict}");
    assert!(verdict.contains(" MB: a node, not your 64 GiB container"), "{verdict}");
    let cpu = finding(&report, "system/cpu_utilization_percentage");
    assert_eq!(cpu.verdict, "12.7 % (median) of 144 cores = 18 cores, not comparable with your 8");
    assert!(cpu.measures == Measures::Node && report.asks_for_action());
}

#[test]
fn one_point_gives_its_rounding_interval() {
    let report = audit(&memory("", NODE, &[132_688.0]), Known::default());
    let found = finding(&report, "system/system_memory_usage_megabytes");
    let (low, high) = found.implied.unwrap().range.unwrap();
    assert!(
        (low - 132_687.95 / 24.55 * 100.0).abs() < 0.01 && (high - 132_688.05 / 24.45 * 100.0).abs() < 0.01
    );
    assert!(
        found.measures == Measures::Unknown && found.verdict.contains("--memory-limit"),
        "{}",
        found.verdict
    );
    assert!(!report.asks_for_action());
}

#[test]
fn a_container_that_sees_its_own_limit() {
    // Under lxcfs /proc/meminfo shows the limit.
    let mut series = memory("", 68_719.476_736, &ramp(20, 40_000.0));
    series.push(history("system/cpu_utilization_percentage", [50.0; 20]));
    let known = Known { memory_limit: size(68_719_476_736.0), node_cores: size(144.0), ..Known::default() };
    let report = audit(&series, known);
    assert_eq!(finding(&report, "system/system_memory_usage_megabytes").measures, Measures::Container);
    // The memory is the container's; its CPU is never claimed.
    let cpu = finding(&report, "system/cpu_utilization_percentage");
    assert!(cpu.measures == Measures::Unknown && !cpu.verdict.contains("144"), "{}", cpu.verdict);
    assert!(!report.asks_for_action());
}

#[test]
fn sizes_that_decide_nothing() {
    let series = memory("", NODE, &ramp(20, 132_688.0));
    let measures = |known| finding(&audit(&series, known), "system/system_memory_usage_megabytes").measures;
    // Larger than what was seen.
    assert_eq!(measures(Known { memory_limit: size(1e12), ..Known::default() }), Measures::Unknown);
    // One point: 540,576 MB is in the interval, and so is much else.
    let limit = Known { memory_limit: size(NODE * 1e6), ..Known::default() };
    let wide = audit(&memory("", NODE * 1.001, &[132_688.0]), limit.clone());
    assert_eq!(wide.findings[0].measures, Measures::Unknown);
    assert_eq!(measures(limit), Measures::Container);
    // The limit is the node.
    let both = Known { memory_limit: size(NODE * 1e6), node_memory: size(NODE * 1e6), ..Known::default() };
    assert_eq!(measures(both), Measures::Unknown);
    // 512 GiB are built in, and the kernel shows 503.4.
    assert_eq!(
        measures(Known { node_memory: size(512.0 * 1_073_741_824.0), ..Known::default() }),
        Measures::Node
    );
    assert_eq!(measures(Known { node_memory: size(1e12), ..Known::default() }), Measures::Unknown);
}

#[test]
fn a_total_that_changed_is_said() {
    let mut usages = memory("", NODE, &ramp(20, 132_688.0));
    for (history, other) in usages.iter_mut().zip(memory("", 260_000.0, &ramp(20, 90_000.0))) {
        let late = other.points.iter().map(|p| Point { timestamp_ms: p.timestamp_ms + 1_000_000, ..*p });
        history.points.extend(late);
    }
    let report = audit(&usages, Known { memory_limit: size(68_719_476_736.0), ..Known::default() });
    let found = finding(&report, "system/system_memory_usage_megabytes");
    assert_eq!(found.implied.unwrap().range, None);
    assert!(found.verdict.contains("no single total fits all 40 points"), "{}", found.verdict);
    // All of it is beyond the limit all the same.
    assert_eq!(found.measures, Measures::Node);
}

#[test]
fn the_runs_own_series_tell_the_limits() {
    let mut series = memory("", NODE, &ramp(20, 132_688.0));
    series.push(history("system/cpu_utilization_percentage", [12.7]));
    series.push(history("system/rank_0/container_memory_limit_megabytes", [68_719.476_736]));
    series.push(history("system/rank_0/container_cpu_limit_cores", [8.0]));
    series.push(history("system/node_a/node_memory_usage_megabytes", [100_000.0]));
    series.push(history("system/node_a/node_memory_available_megabytes", [440_576.0]));
    // Our own GPU series is not the monitor's.
    series.push(history("system/rank_0/gpu_0_utilization_percentage", [3.0]));
    let report = audit(&series, Known::default());
    assert_eq!(report.findings.len(), 3);
    let found = finding(&report, "system/system_memory_usage_megabytes");
    assert!(found.measures == Measures::Node && found.verdict.contains("not your 64 GiB container"));
    assert!(
        finding(&report, "system/cpu_utilization_percentage").verdict.contains("not comparable with your 8")
    );
}

#[test]
fn one_node_logged_by_several_ranks() {
    let usages = ramp(30, 132_688.0);
    let other: Vec<f64> = usages.iter().map(|u| u * 0.9).collect();
    let mut series = Vec::new();
    for (prefix, values) in [("r0/", &usages), ("r1/", &usages), ("r2/", &other)] {
        series.extend(memory(prefix, NODE, values));
        series.push(history(&format!("system/{prefix}cpu_utilization_percentage"), [5.0; 30]));
        series.push(history(&format!("system/{prefix}disk_usage_megabytes"), [90_000.0; 30]));
    }
    // The second monitor samples 3 s later, and the memory has moved a little.
    for h in series.iter_mut().filter(|h| h.key.starts_with("system/r1/")) {
        h.points.iter_mut().for_each(|p| p.timestamp_ms += 3000);
        if h.key.ends_with("memory_usage_megabytes") {
            h.points.iter_mut().for_each(|p| p.value += 50.0);
        }
    }
    let report = audit(&series, Known::default());
    let keys: Vec<&[String]> = report.duplicates.iter().map(|d| d.keys.as_slice()).collect();
    assert_eq!(
        keys[0],
        ["system/r0/system_memory_usage_megabytes", "system/r1/system_memory_usage_megabytes"]
    );
    assert_eq!(report.duplicates.len(), 4);
    assert!(report.duplicates[0].verdict.contains("logged 2 times") && report.asks_for_action());

    // Memory that swings between two samples is the same memory.
    let mut swinging = series.clone();
    for h in swinging.iter_mut().filter(|h| h.key.ends_with("memory_usage_megabytes")) {
        let late = if h.key.starts_with("system/r1/") { 0.5 } else { 0.0 };
        for (n, p) in h.points.iter_mut().enumerate() {
            p.value = 20_000.0 + 5_000.0 * ((n as f64 + late) * 0.9).sin();
        }
    }
    swinging.retain(|h| !h.key.starts_with("system/r2/"));
    assert_eq!(audit(&swinging, Known::default()).duplicates.len(), 4);

    // Two nodes that do the same work may agree in memory, but hardly in disk.
    for h in series.iter_mut().filter(|h| h.key == "system/r1/disk_usage_megabytes") {
        h.points.iter_mut().for_each(|p| p.value = 90_200.0);
    }
    assert_eq!(audit(&series, Known::default()).duplicates, []);
}

#[test]
fn disks_gpus_and_networks() {
    let mut series = vec![
        history("system/disk_usage_megabytes", [100_000.0, 100_100.0]),
        history("system/disk_usage_percentage", [10.0, 10.0]),
        history("system/disk_available_megabytes", [900_000.0]),
        history("system/network_receive_megabytes", [1.0]),
        history("system/gpu_0_memory_usage_megabytes", [20_000.0]),
        history("system/gpu_0_memory_usage_percentage", [25.0]),
        history("system/gpu_1_power_usage_watts", [25.0]),
    ];
    series.push(history("system/some_other_series", [1.0]));
    series.push(history("loss", [1.0]));
    let report = audit(&series, Known { memory_limit: size(1e9), ..Known::default() });
    assert_eq!(report.findings.len(), 7);
    assert!(report.findings.iter().all(|f| f.measures == Measures::Unknown));
    let gpu = finding(&report, "system/gpu_0_memory_usage_megabytes").implied.unwrap();
    assert!((gpu.median - 80_000.0).abs() < 1e-6);
    assert!(finding(&report, "system/network_receive_megabytes").verdict.contains("lo included"));
}

#[test]
fn rounded_twice_is_assumed_only_where_needed() {
    // The mean of samples that were rounded: 12.34 → 12.3, 12.36 → 12.4, mean 12.35 → 12.4 (or 12.3).
    let usage = history("system/disk_usage_megabytes", [123_500.0, 123_500.0]);
    let share = history("system/disk_usage_percentage", [12.3, 12.4]);
    let of = |twice| implied::total(&usage.points, &share.points, twice).unwrap();
    assert!(of(true).range.is_some());
    let far = history("system/disk_usage_percentage", [12.2, 12.4]);
    assert_eq!(implied::total(&usage.points, &far.points, false).unwrap().range, None);
}

#[test]
fn pairs_need_the_same_step_and_time() {
    let usage = history("u", [1000.0, 2000.0, 3000.0]).points;
    let mut share = history("p", [10.0, 20.0, 30.0]).points;
    share[1].timestamp_ms += 1;
    share.reverse();
    assert_eq!(implied::total(&usage, &share, false).unwrap().points, 2);
    assert_eq!(implied::total(&usage, &[], false), None);
    let idle = history("p", [0.0]).points;
    assert_eq!(implied::total(&usage, &idle, false), None);
}

#[test]
fn words_for_numbers() {
    assert_eq!(words::grouped(540_576.4), "540,576");
    assert_eq!(
        (words::grouped(0.0), words::grouped(999.0), words::grouped(-1000.0)),
        ("0".into(), "999".into(), "-1,000".into())
    );
    assert_eq!((words::size(68_719_476_736.0), words::size(5e9)), ("64 GiB".into(), "5,000 MB".into()));
    assert_eq!(
        (words::short(8.0), words::short(6.35), words::short(18.288)),
        ("8".into(), "6.35".into(), "18".into())
    );
}
