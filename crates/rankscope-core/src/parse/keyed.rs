//! Files of `key value` lines: memory.stat, cpu.stat, memory.events, memory.oom_control, /proc/meminfo,
//! /proc/<pid>/{io,status}. Keys are looked up by name, since new ones appear in the middle.

use super::{lines, number, tokens};

/// What one key gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// No line has the key.
    NoKey,
    /// The line (from 1) has the key, and no number after it.
    Bad(u32),
    Value(u64),
}

impl Field {
    pub fn value(self) -> Option<u64> {
        match self {
            Field::Value(v) => Some(v),
            Field::NoKey | Field::Bad(_) => None,
        }
    }

    /// This field, or `other` when no line has the key.
    pub fn or(self, other: Field) -> Field {
        if self == Field::NoKey { other } else { self }
    }
}

/// Looks the keys up in one pass. A key may carry its colon (`MemTotal:`); the first line with it counts.
pub fn lookup<const N: usize>(text: &[u8], keys: [&str; N]) -> [Field; N] {
    let mut found = [Field::NoKey; N];
    for (line_number, line) in lines(text) {
        let mut parts = tokens(line);
        let Some(key) = parts.next() else { continue };
        let Some(at) = keys.iter().position(|k| k.as_bytes() == key) else { continue };
        if found[at] == Field::NoKey {
            found[at] = parts.next().and_then(number).map_or(Field::Bad(line_number), Field::Value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_name_and_a_bad_line_loses_itself() {
        let text = b"anon 10\nfile x\nshmem\ninactive_file 7\nanon 99\n";
        assert_eq!(
            lookup(text, ["anon", "file", "shmem", "inactive_file", "kernel"]),
            [Field::Value(10), Field::Bad(2), Field::Bad(3), Field::Value(7), Field::NoKey]
        );
    }

    #[test]
    fn a_key_is_not_a_prefix() {
        assert_eq!(lookup(b"total_rss_huge 5\n", ["total_rss"]), [Field::NoKey]);
        assert_eq!(lookup(b"MemTotal:  16 kB\n", ["MemTotal:"]), [Field::Value(16)]);
    }
}
