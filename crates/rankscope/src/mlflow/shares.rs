//! Who writes what, as the record keeps it and as the names of series follow from it.

use std::collections::BTreeMap;

use rankscope_core::deliver::names::{Share, Subjects, Writer, rank_width};
use rankscope_core::ranks::{in_short, parse};
use serde_json::{Value, json};

use super::delivery::Delivery;
use super::election::Election;
use super::trouble::Trouble;

/// In the record: who wrote what.
pub(super) const NOTE: &str = "writers";

impl Election {
    fn note(&self) -> String {
        let row = |(identity, share): (&String, &Share)| {
            let (writer, from) = match share.writer {
                Writer::Us { from_unix_ms } => (Value::from("us"), Value::from(from_unix_ms)),
                Writer::Rank(rank) => (Value::from(rank), Value::Null),
                Writer::Nobody => return None,
            };
            Some((
                identity.clone(),
                json!({"ranks": in_short(&share.ranks), "writer": writer, "from_unix_ms": from}),
            ))
        };
        Value::Object(self.writers.iter().filter_map(row).collect()).to_string()
    }
}

pub(super) fn read(note: &str) -> BTreeMap<String, Share> {
    let all: BTreeMap<String, Value> = serde_json::from_str(note).unwrap_or_default();
    let share = |(identity, told): (String, Value)| {
        let writer = match (told["from_unix_ms"].as_i64(), told["writer"].as_u64()) {
            (Some(from_unix_ms), _) => Writer::Us { from_unix_ms },
            (None, rank) => Writer::Rank(u32::try_from(rank?).ok()?),
        };
        Some((identity, Share { ranks: parse(told["ranks"].as_str()?)?, writer }))
    };
    all.into_iter().filter_map(share).collect()
}

impl Delivery {
    pub(super) fn subjects(&self) -> Subjects {
        let width =
            self.targets.last().map_or(rank_width(self.record.world()) as i64, |t| t.row.new.rank_width);
        self.subjects_of(width)
    }

    pub(super) fn subjects_of(&self, width: i64) -> Subjects {
        let subjects = super::target::subjects(&self.record, width);
        let node = self.election.writers.keys().find(|identity| identity.starts_with("node:"));
        let subjects = match node.filter(|_| self.election.has_namesake) {
            Some(node) => subjects.with_namesake(node),
            None => subjects,
        };
        subjects.with_shares(self.election.writers.clone())
    }

    /// Has all runs written under the names, and by those, that are settled now.
    pub(super) fn rename(&mut self) -> Result<(), Trouble> {
        let mut changed = false;
        for at in 0..self.targets.len() {
            let subjects = self.subjects_of(self.targets[at].row.new.rank_width);
            if subjects != self.targets[at].subjects {
                self.targets[at].rename(&self.reader, subjects)?;
                changed = true;
            }
        }
        if changed && !self.election.writers.is_empty() {
            let noted = self.reader.set_note(NOTE, &self.election.note());
            self.remark =
                noted.err().map(|error| Trouble::NotNoted(error.to_string())).or(self.remark.take());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_settled_survives_in_the_record() {
        let mut election = Election::new(None);
        let share = |ranks: &[u32], writer| Share { ranks: ranks.iter().copied().collect(), writer };
        election.writers.insert("node:a".into(), share(&[0, 1, 4], Writer::Us { from_unix_ms: 5 }));
        election.writers.insert("rootfs:b".into(), share(&[0], Writer::Us { from_unix_ms: i64::MIN }));
        election.writers.insert("pod:c".into(), share(&[2], Writer::Rank(2)));
        assert_eq!(read(&election.note()), election.writers);
        assert!(read("{").is_empty() && read(r#"{"x": {"ranks": "?"}}"#).is_empty());
    }
}
