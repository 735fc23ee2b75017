//! Keys: `system/<subject>/<series>`. Every key is one that all MLflow servers accept, and no two series meet in one.

use std::fmt::Write;

use crate::series::Scope;

/// Longest part of a key, so that the whole stays below 250.
const MAX_PART: usize = 100;

/// Under whose names one recorder's series stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjects {
    rank: String,
    node: String,
}

impl Subjects {
    /// `width`: digits of a rank. Sections are sorted as text, so ranks are padded.
    pub fn new(rank: u32, width: usize, node_name: &str) -> Subjects {
        Subjects { rank: format!("rank_{rank:0width$}"), node: format!("node_{}", legal(node_name)) }
    }

    pub fn of(&self, scope: Scope) -> &str {
        match scope {
            Scope::Node => &self.node,
            Scope::Container | Scope::Pod | Scope::Rootfs | Scope::Mount | Scope::Gpu | Scope::Process => {
                &self.rank
            }
        }
    }
}

/// Digits that the ranks of a job of this size need.
pub fn rank_width(world_size: Option<u32>) -> usize {
    world_size.unwrap_or(1).max(1).saturating_sub(1).to_string().len()
}

pub fn key(subject: &str, series: &str) -> String {
    format!("system/{subject}/{}", legal(series))
}

/// One part of a key, from any name. A name that has to be changed gets a digest, so that two never meet.
pub fn legal(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !matches!(name, "" | "." | "..") && name.len() <= MAX_PART && name.chars().all(plain) {
        return name.to_owned();
    }
    let mut made: String = name.chars().take(MAX_PART - 20).map(|c| if plain(c) { c } else { '_' }).collect();
    // Writing to a String can't fail.
    let _ = write!(made, "_{:016x}", fnv1a(name.as_bytes()));
    made
}

/// FNV-1a, 64 bits: nobody forges node names to make two of them meet.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_padded_to_the_size_of_the_job() {
        assert_eq!(
            [None, Some(0), Some(1), Some(10), Some(11), Some(100), Some(101)].map(rank_width),
            [1, 1, 1, 1, 2, 2, 3]
        );
        let subjects = Subjects::new(3, rank_width(Some(16)), "gpu-01.cluster");
        assert_eq!(subjects.of(Scope::Container), "rank_03");
        assert_eq!(subjects.of(Scope::Node), "node_gpu-01.cluster");
        assert_eq!(key(subjects.of(Scope::Pod), "pod_x"), "system/rank_03/pod_x");
    }

    #[test]
    fn odd_names_stay_apart() {
        assert_ne!(legal("a b"), legal("a_b"));
        assert_ne!(legal("a/b"), legal("a b"));
        assert!(!legal("").is_empty() && legal(&"é".repeat(400)).len() <= MAX_PART);
    }
}
