//! Who writes what several containers measure alike: every container claims what it could write, the lowest rank writes,
//! and the next in line takes over when it falls silent. Everybody comes to the same answer from the same claims.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::names::fnv1a;
use crate::ranks;

/// What one container says: the value of a tag `rankscope.place.<lowest rank>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claim {
    /// The one in the tag's name.
    #[serde(skip)]
    pub rank: u32,
    /// Name and identity (hashed) of its node.
    pub node: (String, String),
    /// Hash of an identity → what is said of it.
    pub can: BTreeMap<String, Offer>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Offer {
    /// When it was said.
    pub at: i64,
    /// The container's ranks that share it, in short.
    pub ranks: String,
    /// When it took over from one that was silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<i64>,
}

/// An identity, short enough for a tag. A job has thousands at most.
pub fn hash(identity: &str) -> String {
    // FNV alone leaves the first digits alike where only the last characters differ.
    let mut mixed = fnv1a(identity.as_bytes());
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        mixed = (mixed ^ (mixed >> 33)).wrapping_mul(factor);
    }
    format!("{:016x}", mixed ^ (mixed >> 33))[..12].to_owned()
}

/// Claims made so long after the first, and later, come too late to win: the first may have looked by then.
fn is_late(offer: &Offer, first: i64, window_ms: i64) -> bool {
    offer.at.saturating_sub(first) > window_ms / 2
}

/// Who writes the identity, then who would write it instead, and so on.
pub fn line<'a>(claims: &'a [Claim], hash: &str, window_ms: i64) -> Vec<&'a Claim> {
    let mut offers: Vec<(&Claim, &Offer)> =
        claims.iter().filter_map(|claim| Some((claim, claim.can.get(hash)?))).collect();
    let first = offers.iter().map(|(_, offer)| offer.at).min().unwrap_or(0);
    offers.sort_by_key(|(claim, offer)| {
        let late = is_late(offer, first, window_ms);
        (late, if late { offer.at } else { 0 }, claim.rank)
    });
    // The last one that took over writes; whom it took over from was silent, and stands last.
    let taker = offers.iter().enumerate().filter_map(|(at, (_, o))| Some((o.took?, at))).max();
    if let Some((_, at)) = taker {
        offers.rotate_left(at);
    }
    offers.into_iter().map(|(claim, _)| claim).collect()
}

/// The ranks that share the identity, as those know who claimed it in time.
pub fn sharers(claims: &[Claim], hash: &str, window_ms: i64) -> BTreeSet<u32> {
    let offers: Vec<&Offer> = claims.iter().filter_map(|claim| claim.can.get(hash)).collect();
    let first = offers.iter().map(|offer| offer.at).min().unwrap_or(0);
    let in_time = offers.into_iter().filter(|offer| !is_late(offer, first, window_ms));
    in_time.filter_map(|offer| ranks::parse(&offer.ranks)).flatten().collect()
}

/// Whether another node goes by the same name.
pub fn has_namesake(claims: &[Claim], name: &str, hash: &str) -> bool {
    claims.iter().any(|claim| claim.node.0 == name && claim.node.1 != hash)
}

/// Ranks → name of the node, as a driver handed it in. The lowest rank that shares an identity writes it.
pub type Placement = BTreeMap<u32, String>;

/// Ranks that share it by the placement; `None`: nothing that containers share, as far as its name tells.
pub fn placed(placement: &Placement, rank: u32, identity: &str) -> Option<BTreeSet<u32>> {
    let here = placement.get(&rank)?;
    let (scope, rest) = identity.split_once(':')?;
    let on_node = || placement.iter().filter(|(_, node)| *node == here).map(|(rank, _)| *rank).collect();
    match scope {
        "mount" if crate::identity::is_network_fs(rest.split(':').next()?) => {
            Some(placement.keys().copied().collect())
        }
        "node" => Some(on_node()),
        "rootfs" | "mount" if is_of_node(rest.split_once(':')?.1) => Some(on_node()),
        _ => None,
    }
}

/// A disk of the node, or the store that a runtime keeps its containers in; not a file system in memory, nor a directory
/// that may be one container's.
fn is_of_node(disk: &str) -> bool {
    match disk.split_once(':') {
        Some((path, _)) if path.starts_with('/') => {
            path.ends_with("/snapshots") || path.ends_with("/overlay2")
        }
        Some((major, _)) => major != "0",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(rank: u32, at: i64, ranks: &str, took: Option<i64>) -> Claim {
        let offer = Offer { at, ranks: ranks.into(), took };
        Claim { rank, node: ("n".into(), "a".into()), can: [("x".to_owned(), offer)].into() }
    }

    fn ranks_of(claims: &[Claim]) -> Vec<u32> {
        line(claims, "x", 10_000).iter().map(|c| c.rank).collect()
    }

    #[test]
    fn the_lowest_rank_that_came_in_time_writes() {
        let claims = [
            claim(4, 1_000, "4-5", None),
            claim(2, 6_000, "2-3", None),
            claim(0, 6_001, "0", None),
            claim(1, 90_000, "1", None),
        ];
        assert_eq!(ranks_of(&claims), [2, 4, 0, 1]);
        assert_eq!(ranks::in_short(&sharers(&claims, "x", 10_000)), "2-5");
        assert!(line(&claims, "y", 10_000).is_empty() && sharers(&claims, "y", 10_000).is_empty());
    }

    #[test]
    fn who_took_over_writes_and_the_silent_one_stands_last() {
        let claims = [
            claim(0, 0, "0", None),
            claim(2, 0, "2", Some(50)),
            claim(4, 0, "4", Some(90)),
            claim(6, 0, "6", None),
        ];
        assert_eq!(ranks_of(&claims), [4, 6, 0, 2]);
    }

    #[test]
    fn a_claim_survives_the_tag() {
        let said = claim(3, 7, "3", None);
        let text = serde_json::to_string(&said).unwrap();
        assert_eq!(text, r#"{"node":["n","a"],"can":{"x":{"at":7,"ranks":"3"}}}"#);
        let read: Claim = serde_json::from_str(&text).unwrap();
        assert_eq!(Claim { rank: 3, ..read }, said);
        let alone = [said];
        assert!(has_namesake(&alone, "n", "b") && !has_namesake(&alone, "n", "a"));
        assert_eq!(hash("node:x").len(), 12);
    }

    #[test]
    fn a_placement_shares_by_node_and_across_nodes() {
        let placement: Placement =
            [(0, "a"), (1, "b"), (2, "c"), (3, "a")].map(|(r, n)| (r, n.to_owned())).into();
        let of = |rank, identity| placed(&placement, rank, identity).map(|r| ranks::in_short(&r));
        assert_eq!(of(3, "node:boot").as_deref(), Some("0,3"));
        assert_eq!(of(1, "rootfs:boot:8:1").as_deref(), Some("1"));
        assert_eq!(of(1, "mount:boot:8:1").as_deref(), Some("1"));
        assert_eq!(of(1, "mount:nfs4:server:/data").as_deref(), Some("0-3"));
        assert_eq!((of(1, "container:boot:1:2"), of(9, "node:boot")), (None, None));
        assert_eq!(of(3, "rootfs:boot:/var/lib/docker/overlay2:4096:9").as_deref(), Some("0,3"));
        assert_eq!((of(3, "rootfs:boot:/tmp/upper:4096:9"), of(3, "mount:boot:0:46")), (None, None));
    }
}
