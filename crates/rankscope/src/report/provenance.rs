//! Where each series came from and why others are missing, of all ranks together.

use std::collections::{BTreeMap, BTreeSet};

use rankscope_core::deliver::scopes::Provenance;
use rankscope_core::report::{Gone, Measured};

#[derive(Debug, Default)]
pub struct Collected {
    measured: BTreeMap<Place, Vec<u32>>,
    missing: BTreeMap<[String; 3], Vec<u32>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Its row in the table of series, so that the order is the documentation's.
    order: i64,
    series: String,
    scope: &'static str,
    source: String,
    level: Option<String>,
    identity: Option<String>,
    note: Option<String>,
}

impl Collected {
    pub fn add(&mut self, known: Provenance, ranks: &[u32]) {
        // Above a launcher the whole tree's series stands beside each rank's own, which is what is shown.
        let of_ranks: BTreeSet<&str> =
            known.series.iter().filter(|s| s.rank.is_some()).map(|s| s.name.as_str()).collect();
        for series in known.series.iter().filter(|s| s.rank.is_some() || !of_ranks.contains(&*s.name)) {
            let own: Vec<u32> = series.rank.map_or_else(|| ranks.to_vec(), |rank| vec![rank]);
            if let Some(newest) = known.origins.iter().rev().find(|origin| origin.series == series.id) {
                let place = Place {
                    order: order(&series.name),
                    series: series.name.clone(),
                    scope: series.scope.as_str(),
                    source: newest.source.clone(),
                    level: newest.level.clone(),
                    identity: newest.identity.clone(),
                    note: newest.note.clone(),
                };
                self.measured.entry(place).or_default().extend(&own);
            }
            let open =
                known.gaps.iter().rev().find(|gap| gap.series == series.id && gap.until_unix_ms.is_none());
            if let Some(gap) = open {
                let key = [series.name.clone(), gap.reason.clone(), gap.detail.clone()];
                self.missing.entry(key).or_default().extend(own);
            }
        }
    }

    pub fn finish(self) -> (Vec<Measured>, Vec<Gone>) {
        let measured = self.measured.into_iter().map(|(place, ranks)| Measured {
            series: place.series,
            ranks: sorted(ranks),
            scope: place.scope.to_owned(),
            source: place.source,
            level: place.level,
            identity: place.identity,
            note: place.note,
        });
        let missing = self.missing.into_iter().map(|([series, reason, detail], ranks)| Gone {
            series,
            ranks: sorted(ranks),
            reason,
            detail,
        });
        (measured.collect(), missing.collect())
    }
}

fn sorted(mut ranks: Vec<u32>) -> Vec<u32> {
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

fn order(name: &str) -> i64 {
    use rankscope_core::series::{ALL, by_name};
    let known = by_name(name).and_then(|series| ALL.iter().position(|one| std::ptr::eq(*one, series)));
    known.and_then(|at| i64::try_from(at).ok()).unwrap_or(i64::MAX)
}
