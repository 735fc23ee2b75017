//! Keys: `system/<subject>/<series>`. Every key is one that all MLflow servers accept, and no two series meet in one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::StoredSeries;
use super::election::hash;
use crate::ranks::in_short;
use crate::series::Scope;

/// Longest part of a key, so that the whole stays below 250.
const MAX_PART: usize = 100;

/// Under whose names one recorder's series stand, and which of them it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjects {
    /// Of this recorder.
    ranks: BTreeSet<u32>,
    /// Each process is known by its rank, so the sum over the tree is nobody's.
    by_process: bool,
    width: usize,
    own: String,
    node: String,
    shares: BTreeMap<String, Share>,
}

/// An identity that this recorder reads, and others may read too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub ranks: BTreeSet<u32>,
    pub writer: Writer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// This recorder, from then on.
    Us { from_unix_ms: i64 },
    /// The recorder of that rank.
    Rank(u32),
    /// Not known yet.
    Nobody,
}

const OURS: Writer = Writer::Us { from_unix_ms: i64::MIN };

/// Where a series stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub subject: String,
    pub writer: Writer,
    /// Ranks that it speaks for, as far as this recorder knows.
    pub ranks: BTreeSet<u32>,
}

impl Subjects {
    /// `width`: digits of a rank. Sections are sorted as text, so ranks are padded.
    pub fn new(rank: u32, width: usize, node_name: &str) -> Subjects {
        let mut subjects = Subjects {
            ranks: [rank].into(),
            by_process: false,
            width,
            own: String::new(),
            node: format!("node_{}", legal(node_name)),
            shares: BTreeMap::new(),
        };
        subjects.own = subjects.of_ranks(&subjects.ranks);
        subjects
    }

    /// A recorder above a launcher: its tree has several ranks.
    pub fn of_tree(self, ranks: &BTreeSet<u32>) -> Subjects {
        if ranks.is_empty() {
            return self;
        }
        let own = self.of_ranks(ranks);
        Subjects { ranks: ranks.clone(), by_process: true, own, ..self }
    }

    /// Another node goes by this one's name.
    pub fn with_namesake(mut self, identity: &str) -> Subjects {
        self.node = format!("{}_{}", self.node, &hash(identity)[..4]);
        self
    }

    pub fn with_shares(self, shares: BTreeMap<String, Share>) -> Subjects {
        Subjects { shares, ..self }
    }

    pub fn of(&self, scope: Scope) -> &str {
        match scope {
            Scope::Node => &self.node,
            Scope::Container | Scope::Pod | Scope::Rootfs | Scope::Mount | Scope::Gpu | Scope::Process => {
                &self.own
            }
        }
    }

    pub fn named(&self, series: &StoredSeries) -> Named {
        if let Some(rank) = series.rank {
            let subject = format!("rank_{rank:0width$}", width = self.width);
            return Named { subject, writer: OURS, ranks: [rank].into() };
        }
        let share = series.identity.as_ref().and_then(|identity| self.shares.get(identity));
        let ranks = share.map_or(&self.ranks, |share| &share.ranks);
        let subject = match (series.scope, &series.identity) {
            (Scope::Node | Scope::Process, _) | (_, None) => self.of(series.scope).to_owned(),
            (scope, Some(identity)) if has_gaps(ranks) => {
                format!("{}_{}", scope.as_str(), &hash(identity)[..8])
            }
            _ => self.of_ranks(ranks),
        };
        let writer = match share {
            _ if series.scope == Scope::Process && self.by_process && !of_training(series) => Writer::Nobody,
            Some(share) => share.writer,
            None => OURS,
        };
        Named { subject, writer, ranks: ranks.clone() }
    }

    fn of_ranks(&self, ranks: &BTreeSet<u32>) -> String {
        let width = self.width;
        match (ranks.first(), ranks.last()) {
            (Some(a), Some(b)) if a != b && !has_gaps(ranks) => format!("ranks_{a:0width$}-{b:0width$}"),
            (Some(a), Some(b)) if a != b => format!("ranks_{}", in_short(ranks).replace(',', "_")),
            (first, _) => format!("rank_{:0width$}", first.copied().unwrap_or(0)),
        }
    }
}

/// What the script marked, which is no sum over processes.
fn of_training(series: &StoredSeries) -> bool {
    series.name.starts_with("training_")
}

fn has_gaps(ranks: &BTreeSet<u32>) -> bool {
    let Some((first, last)) = ranks.first().zip(ranks.last()) else { return false };
    (last - first) as usize + 1 != ranks.len()
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

    fn container(rank: Option<u32>) -> StoredSeries {
        StoredSeries {
            id: 1,
            name: "container_x".into(),
            unit: "MB".into(),
            kind: crate::series::Kind::Gauge,
            scope: Scope::Container,
            class: crate::series::Class::Core,
            identity: Some("container:b:1:2".into()),
            rank,
        }
    }

    #[test]
    fn what_several_ranks_share_stands_under_all_of_them() {
        let shared = |ranks: &[u32], writer| {
            let share = Share { ranks: ranks.iter().copied().collect(), writer };
            Subjects::new(1, 2, "n").with_shares([("container:b:1:2".to_owned(), share)].into())
        };
        let of = |ranks: &[u32]| shared(ranks, OURS).named(&container(None)).subject;
        assert_eq!(of(&[1]), "rank_01");
        assert_eq!(of(&[0, 1, 2]), "ranks_00-02");
        assert_eq!(of(&[0, 3]), format!("container_{}", &hash("container:b:1:2")[..8]));
        assert_eq!(shared(&[0, 1], Writer::Rank(0)).named(&container(None)).writer, Writer::Rank(0));
        let alone = Subjects::new(1, 2, "n").named(&container(None));
        assert_eq!((alone.subject.as_str(), alone.writer), ("rank_01", OURS));
    }

    #[test]
    fn above_a_launcher_processes_stand_under_their_ranks() {
        let tree = Subjects::new(0, 1, "n").of_tree(&[2, 3].into());
        assert_eq!(tree.of(Scope::Container), "ranks_2-3");
        let rss = StoredSeries { scope: Scope::Process, identity: None, ..container(Some(3)) };
        assert_eq!(tree.named(&rss).subject, "rank_3");
        let whole = StoredSeries { rank: None, ..rss };
        assert_eq!(tree.named(&whole).writer, Writer::Nobody);
        let step = StoredSeries { name: "training_step".into(), ..whole };
        assert_eq!(tree.named(&step).writer, OURS);
        assert_eq!(Subjects::new(5, 1, "n").of_tree(&BTreeSet::new()).of(Scope::Process), "rank_5");
    }

    #[test]
    fn nodes_with_one_name_stay_apart() {
        let of = |id: &str| Subjects::new(0, 1, "n").with_namesake(id).of(Scope::Node).to_owned();
        assert!(of("node:a").starts_with("node_n_") && of("node:a") != of("node:b"));
    }

    #[test]
    fn odd_names_stay_apart() {
        assert_ne!(legal("a b"), legal("a_b"));
        assert_ne!(legal("a/b"), legal("a b"));
        assert!(!legal("").is_empty() && legal(&"é".repeat(400)).len() <= MAX_PART);
    }
}
