//! Tags `rankscope.place.<rank>`: what each container could write.

use rankscope_core::deliver::election::Claim;

use super::types::{Run, Tag};

const PLACE: &str = "rankscope.place.";

pub fn claims_of(run: &Run) -> Vec<Claim> {
    let claim = |tag: &Tag| {
        let rank = tag.key().strip_prefix(PLACE)?.parse().ok()?;
        Some(Claim { rank, ..serde_json::from_str(tag.value()).ok()? })
    };
    run.tags.iter().filter_map(claim).collect()
}

/// `None`: more than a tag holds.
pub fn tag_of(claim: &Claim) -> Option<Tag> {
    Tag::new(&format!("{PLACE}{}", claim.rank), &serde_json::to_string(claim).ok()?).ok()
}

/// Puts a claim of ours where the server would have it.
pub fn with_own(mut claims: Vec<Claim>, own: &Claim) -> Vec<Claim> {
    claims.retain(|claim| claim.rank != own.rank);
    claims.push(own.clone());
    claims
}
