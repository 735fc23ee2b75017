//! Single numbers, limits, quotas, lists of CPUs.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use rankscope_core::parse::{cpu_list, limit, number, single};

fn first_word(text: &[u8]) -> &[u8] {
    text.split(u8::is_ascii_whitespace).find(|w| !w.is_empty()).unwrap_or_default()
}

/// As std reads it, less the sign that it allows.
fn by_std(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok().filter(|w| !w.starts_with('+'))?.parse().ok()
}

fn cpus_by_std(text: &[u8]) -> Option<usize> {
    let mut all = BTreeSet::new();
    for part in std::str::from_utf8(text).ok()?.trim_ascii().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let end = |t: &str| by_std(t.trim_ascii().as_bytes());
        let (first, last) = (end(first)?, end(last)?);
        if first > last || last > 65_535 {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all.len())
}

fuzz_target!(|text: &[u8]| {
    assert_eq!(number(text), by_std(text));
    let word = first_word(text);
    assert_eq!(single(text).ok(), by_std(word));
    match limit::bytes(text) {
        Ok(Some(bytes)) => assert_eq!(Some(bytes), by_std(word)),
        Ok(None) => assert!(word == b"max" || word == b"-1" || by_std(word).is_some_and(|n| n > 1 << 62)),
        Err(_) => assert!(by_std(word).is_none()),
    }
    if let Ok(Some(cores)) = limit::cpu_max(text) {
        assert!(cores.is_finite() && cores > 0.0);
    }
    let _ = limit::cfs_quota(text);
    let cpus = cpu_list::parse(text);
    if let Some(set) = &cpus {
        assert_eq!(set.and(set).count(), set.count());
    }
    if text.len() < 64 && !text.trim_ascii().is_empty() {
        assert_eq!(cpus.map(|set| set.count() as usize), cpus_by_std(text));
    }
});
