//! Keys of metrics, tags and params: what every server accepts, and a one-to-one mapping into it.
//!
//! Servers accept more (letters of any script, blank, newer ones a colon); rankscope writes only ASCII letters,
//! digits and `_ - . /`, in normal path form, at most 250 long. One bad key would lose its whole batch.

use std::fmt::Write;

pub const MAX_LENGTH: usize = 250;

/// Whether the key can be sent as it is.
pub fn is_valid(key: &str) -> bool {
    key.len() <= MAX_LENGTH
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b))
        && key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// A valid key that no other name is mapped to. A valid key without the mark of a mapped one stays as it is; in any
/// other each odd character becomes `_`, and `.x-` with 16 hex digits of a digest of the whole name is appended.
pub fn valid(name: &str) -> String {
    if is_valid(name) && !is_marked(name) {
        return name.to_owned();
    }
    let mut key = String::with_capacity(name.len() + 20);
    for part in name.split('/').filter(|part| !matches!(*part, "" | "." | "..")) {
        if !key.is_empty() {
            key.push('/');
        }
        let readable = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
        key.extend(part.chars().map(readable));
    }
    if key.is_empty() {
        key.push('_');
    }
    let mark = MARK.len() + DIGITS;
    key.truncate(MAX_LENGTH - mark);
    let kept = key.trim_end_matches('/').len();
    key.truncate(kept);
    // Writing to a String can't fail.
    let _ = write!(key, "{MARK}{:0DIGITS$x}", digest(name));
    key
}

const MARK: &str = ".x-";
const DIGITS: usize = 16;

/// A name that looks mapped is mapped once more: else it could meet a mapped one.
fn is_marked(name: &str) -> bool {
    let at = name.len().saturating_sub(MARK.len() + DIGITS);
    let tail = name.get(at..).and_then(|tail| tail.strip_prefix(MARK));
    tail.is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
}

/// FNV-1a, 64 bits: names come from a job's own cgroups and mounts, nobody forges collisions here.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const ODD: [&str; 16] = [
        "gpu 0/memory.used (MB)",
        "gpu:0/util",
        "disk//dev/sda",
        "/abs",
        "abs/",
        "a/../b",
        "a/./b",
        "x[1]",
        "x(1)",
        "timing(s)/gen",
        "",
        "..",
        "é",
        "a\n",
        "../../..",
        "%",
    ];

    #[test]
    fn odd_names_become_valid_and_stay_apart() {
        let long: Vec<String> = (0..9).map(|n| format!("{}{n}", "k".repeat(250))).collect();
        let names: Vec<&str> = ODD.iter().copied().chain(long.iter().map(String::as_str)).collect();
        let keys: BTreeSet<String> = names.iter().map(|n| valid(n)).collect();
        assert_eq!(keys.len(), names.len());
        assert!(keys.iter().all(|k| is_valid(k)), "{keys:?}");
        assert!(names.iter().all(|n| !is_valid(n)));
        // A mapped key is itself a name that someone could use.
        let again: BTreeSet<String> = keys.iter().map(|k| valid(k)).collect();
        assert!(again.is_disjoint(&keys));
    }

    #[test]
    fn good_names_stay() {
        for name in ["system/rank_03/container_memory_usage_megabytes", "a.b-c_d/e", "x"] {
            assert_eq!(valid(name), name);
        }
        assert!(is_valid(&"k".repeat(250)) && !is_valid(&"k".repeat(251)));
        assert_eq!(valid("x[1]").len(), "x_1_".len() + 19);
    }

    proptest::proptest! {
        #[test]
        fn any_name(name in ".{0,300}") {
            proptest::prop_assert!(is_valid(&valid(&name)));
        }
    }
}
