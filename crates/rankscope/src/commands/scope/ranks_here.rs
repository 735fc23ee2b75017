//! Which rank the process is, and which ranks are below it.

use rankscope_core::ranks::{Below, Place, in_short};

pub struct Ranks {
    pub place: Place,
    /// `None`: nobody's processes are looked at.
    pub below: Option<Below>,
}

impl Ranks {
    pub fn world(&self) -> Option<u32> {
        self.below.as_ref().and_then(|below| below.world_size).or(self.place.world_size)
    }

    /// `None`: there is nothing to say of ranks.
    pub fn words(&self) -> Option<String> {
        let of = self.world().map(|world| format!(" of {world}")).unwrap_or_default();
        let conflict = self.place.conflict.as_ref().map(|c| format!(" ({c})")).unwrap_or_default();
        match (&self.below, self.place.rank) {
            (Some(below), _) if !below.ranks.is_empty() => Some(format!(
                "Ranks: {}{of}, by what the processes below were started with; each has its own process series.",
                in_short(&below.ranks)
            )),
            (_, Some(rank)) => Some(format!("Ranks: this is rank {rank}{of}{conflict}.")),
            (Some(below), None) if below.launcher => Some(
                "Ranks: a launcher runs here, and no process was started with a rank (one that a program sets inside \
                 itself is not visible): the tree is one subject."
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said() {
        let words = |ranks: &[u32], launcher, rank| {
            let below = Below { ranks: ranks.iter().copied().collect(), world_size: Some(8), launcher };
            Ranks { place: Place { rank, ..Place::default() }, below: Some(below) }.words()
        };
        assert!(words(&[0, 1], true, None).unwrap().starts_with("Ranks: 0-1 of 8, by what"));
        assert_eq!(words(&[], false, Some(3)).as_deref(), Some("Ranks: this is rank 3 of 8."));
        assert!(words(&[], true, None).unwrap().ends_with("the tree is one subject."));
        assert_eq!(words(&[], false, None), None);
    }
}
