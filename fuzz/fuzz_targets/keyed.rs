//! Files of `key value` lines: memory.stat, memory.events, cpu.stat, /proc/meminfo.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rankscope_core::parse::keyed::{Field, lookup};
use rankscope_core::parse::node;

const KEYS: [&str; 6] = ["anon", "inactive_file", "total_rss", "oom_kill", "nr_throttled", "MemAvailable:"];

/// The same by std's words instead of ours.
fn expected(text: &[u8], key: &str) -> Field {
    for (line, n) in text.split(|b| *b == b'\n').zip(1u32..) {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        if words.next() == Some(key.as_bytes()) {
            let digits = words.next().filter(|w| w.iter().all(u8::is_ascii_digit));
            let number = digits.and_then(|w| std::str::from_utf8(w).ok()?.parse().ok());
            return number.map_or(Field::Bad(n), Field::Value);
        }
    }
    Field::NoKey
}

fuzz_target!(|text: &[u8]| {
    for (key, found) in KEYS.into_iter().zip(lookup(text, KEYS)) {
        assert_eq!(found, expected(text, key), "{key}");
    }
    let _ = node::meminfo(text);
});
