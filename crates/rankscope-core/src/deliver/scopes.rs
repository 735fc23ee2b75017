//! Provenance: whose each delivered number is, which file it came from, and why others are missing.

use std::collections::BTreeMap;

use super::StoredSeries;
use super::names::{Named, Subjects, key};
use crate::series::Scope;

/// Servers take more, but a tag is read by people.
const MAX_TAG: usize = 500;

/// Where a series came from, from then on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredOrigin {
    pub series: i64,
    pub since_unix_ms: i64,
    pub identity: Option<String>,
    pub source: String,
    pub level: Option<String>,
    pub note: Option<String>,
}

/// Why a series has no value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredGap {
    pub series: i64,
    pub reason: String,
    pub detail: String,
    pub since_unix_ms: i64,
    pub until_unix_ms: Option<i64>,
}

/// What the store knows about its series.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    pub series: Vec<StoredSeries>,
    /// Oldest first.
    pub origins: Vec<StoredOrigin>,
    pub gaps: Vec<StoredGap>,
}

/// One series, as `rankscope/scopes.json` shows it.
#[derive(Clone, Debug)]
pub struct Described<'a> {
    pub series: &'a StoredSeries,
    pub key: String,
    pub named: Named,
    pub origins: Vec<&'a StoredOrigin>,
    pub gaps: Vec<&'a StoredGap>,
}

pub fn describe<'a>(known: &'a Provenance, subjects: &Subjects) -> Vec<Described<'a>> {
    let one = |series: &'a StoredSeries| {
        let named = subjects.named(series);
        Described {
            series,
            key: key(&named.subject, &series.name),
            named,
            origins: known.origins.iter().filter(|o| o.series == series.id).collect(),
            gaps: known.gaps.iter().filter(|g| g.series == series.id).collect(),
        }
    };
    known.series.iter().map(one).collect()
}

/// `container_memory`, `container_cpu`, `node_memory`, `pod_network`, `mount_<label>`, `rootfs`, `gpu_<i>`,
/// `process`, `training`.
pub fn family(series: &StoredSeries) -> &str {
    let name = series.name.as_str();
    match series.scope {
        _ if name.starts_with("training_") => "training",
        Scope::Rootfs | Scope::Process => series.scope.as_str(),
        Scope::Mount => {
            ["_usage_", "_available_"].iter().find_map(|cut| name.rfind(cut)).map_or(name, |at| &name[..at])
        }
        // `gpu_0`, with `gpu_0_mig_1` in it.
        Scope::Node | Scope::Container | Scope::Pod | Scope::Gpu => {
            let second = name.match_indices('_').nth(1).map_or(name.len(), |(at, _)| at);
            &name[..second]
        }
    }
}

/// One line a family, for a tag: an artifact root without a proxy leaves no other way to say it.
pub fn family_tags(described: &[Described]) -> BTreeMap<String, String> {
    let mut lines: BTreeMap<&str, Vec<&Described>> = BTreeMap::new();
    for one in described {
        lines.entry(family(one.series)).or_default().push(one);
    }
    lines.into_iter().map(|(family, of)| (family.to_owned(), cut(&line(&of), MAX_TAG))).collect()
}

fn line(family: &[&Described]) -> String {
    let Some(first) = family.first() else { return String::new() };
    let mut text = format!("{} of {}", first.series.scope.as_str(), first.named.subject);
    let newest = |d: &Described| d.origins.last().copied().cloned();
    let present: Vec<StoredOrigin> = family.iter().filter_map(|d| newest(d)).collect();
    if present.is_empty() {
        let gap = family.iter().find_map(|d| d.gaps.last());
        let why = gap.map_or(String::new(), |g| format!(": {}: {}", g.reason, g.detail));
        return format!("{text}; missing{why}");
    }
    let distinct = |pick: fn(&StoredOrigin) -> Option<&str>| {
        let mut seen: Vec<&str> = Vec::new();
        for value in present.iter().filter_map(pick) {
            if !seen.contains(&value) {
                seen.push(value);
            }
        }
        seen.join(", ")
    };
    let parts = [
        ("identity", distinct(|o| o.identity.as_deref())),
        ("level", distinct(|o| o.level.as_deref())),
        ("source", sources(&present)),
        ("note", distinct(|o| o.note.as_deref())),
    ];
    for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("; {name} {value}"));
    }
    // It was there, and all of it is gone: a lost GPU.
    let newest_gaps = family.iter().map(|d| d.gaps.last().filter(|g| g.until_unix_ms.is_none()));
    let gone: Option<Vec<&&StoredGap>> = newest_gaps.collect();
    if let Some(gap) = gone.as_ref().and_then(|gaps| gaps.first()) {
        text.insert_str(0, &format!("ended: {}: {}; ", gap.reason, gap.detail));
    }
    text
}

/// Files of one directory together: `/sys/fs/cgroup/{memory.current, memory.stat}`.
fn sources(present: &[StoredOrigin]) -> String {
    let mut folders: Vec<(&str, Vec<&str>)> = Vec::new();
    for origin in present {
        let source = origin.source.as_str();
        let (folder, file) = match source.rfind('/').filter(|_| source.starts_with('/')) {
            Some(at) => source.split_at(at + 1),
            None => ("", source),
        };
        match folders.iter_mut().find(|(known, _)| *known == folder) {
            Some((_, files)) if files.contains(&file) => {}
            Some((_, files)) => files.push(file),
            None => folders.push((folder, vec![file])),
        }
    }
    let one = |(folder, files): &(&str, Vec<&str>)| match files.as_slice() {
        [file] => format!("{folder}{file}"),
        many if folder.is_empty() => many.join(", "),
        many => format!("{folder}{{{}}}", many.join(", ")),
    };
    folders.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The first characters, with `…` if there were more.
fn cut(text: &str, at_most: usize) -> String {
    match text.char_indices().nth(at_most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(at_most - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{ALL, Class, Kind};

    fn stored(id: i64, name: &str, scope: Scope) -> StoredSeries {
        StoredSeries {
            id,
            name: name.into(),
            unit: "MB".into(),
            kind: Kind::Gauge,
            scope,
            class: Class::Core,
            identity: None,
            rank: None,
        }
    }

    #[test]
    fn families() {
        let of = |name: &str, scope| family(&stored(1, name, scope)).to_owned();
        assert_eq!(of("container_memory_limit_megabytes", Scope::Container), "container_memory");
        assert_eq!(of("container_pids", Scope::Container), "container_pids");
        assert_eq!(of("mount_a_usage_b_usage_megabytes", Scope::Mount), "mount_a_usage_b");
        assert_eq!(of("process_rss_megabytes", Scope::Process), "process");
        assert_eq!(of("gpu_12_mig_1_memory_usage_megabytes", Scope::Gpu), "gpu_12");
        assert_eq!(of("training_step", Scope::Process), "training");
        assert!(ALL.len() > 40);
    }

    #[test]
    fn files_of_one_directory_stand_together() {
        let of = |source: &str| StoredOrigin { source: source.into(), ..StoredOrigin::default() };
        let all = ["/a/x", "/a/y", "/a/x", "statvfs(/)", "/b/z"].map(of);
        assert_eq!(sources(&all), "/a/{x, y}, statvfs(/), /b/z");
    }

    #[test]
    fn a_tag_says_whose_it_is_and_stays_short() {
        let series = vec![stored(1, "container_memory_usage_megabytes", Scope::Container)];
        let origin = StoredOrigin {
            series: 1,
            identity: Some("container:b:1:2".into()),
            source: "é".repeat(600),
            level: Some("/kubepods".into()),
            ..StoredOrigin::default()
        };
        let known = Provenance { series, origins: vec![origin], gaps: vec![] };
        let subjects = Subjects::new(0, 1, "n");
        let tags = family_tags(&describe(&known, &subjects));
        let tag = &tags["container_memory"];
        assert!(
            tag.starts_with("container of rank_0; identity container:b:1:2; level /kubepods; source é"),
            "{tag}"
        );
        assert_eq!(tag.chars().count(), 500);
        let missing = Provenance {
            gaps: vec![StoredGap {
                series: 1,
                reason: "absent".into(),
                detail: "no file".into(),
                ..StoredGap::default()
            }],
            origins: vec![],
            ..known
        };
        let tags = family_tags(&describe(&missing, &subjects));
        assert_eq!(tags["container_memory"], "container of rank_0; missing: absent: no file");
    }

    #[test]
    fn a_tag_says_why_a_whole_family_ended() {
        let names = ["gpu_2_utilization_percentage", "gpu_2_power_usage_watts"];
        let series: Vec<StoredSeries> =
            (1..).zip(names).map(|(id, name)| stored(id, name, Scope::Gpu)).collect();
        let origin = StoredOrigin { series: 1, source: "nvml".into(), ..StoredOrigin::default() };
        let gap = |series| StoredGap {
            series,
            reason: "broken".into(),
            detail: "GPU is lost (15)".into(),
            ..StoredGap::default()
        };
        let known = Provenance { series, origins: vec![origin], gaps: vec![gap(1), gap(2)] };
        let subjects = Subjects::new(0, 1, "n");
        let tag = |known: &Provenance| family_tags(&describe(known, &subjects))["gpu_2"].clone();
        assert_eq!(tag(&known), "ended: broken: GPU is lost (15); gpu of rank_0; source nvml");
        let alive = Provenance { gaps: vec![gap(2)], ..known };
        assert_eq!(tag(&alive), "gpu of rank_0; source nvml");
    }
}
