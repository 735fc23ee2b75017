//! What is written has to be made first: gathered, copied, packed. All of it is the save's, as far as the stacks show it
//! below the function that writes.

use std::collections::{HashMap, HashSet};

use super::super::facts::rank::RankFacts;
use super::super::facts::stacks::Sampled;

/// Of the samples while it writes: so many are below the function that saves; slots take in what comes before and after.
const BELOW: f64 = 0.6;
/// Of that function's time: so much may pass while the GPU works. Of the training's own more does.
const BESIDE: f64 = 0.2;
/// Fewer samples show no function.
const FEWEST: usize = 4;

/// Wall time, lost time, and lost time while much is written.
#[derive(Default)]
struct Below {
    wall: f64,
    lost: f64,
    writing: f64,
}

/// Share of the lost time below the narrowest function that most writing has in common. `inside`: slots in which it
/// writes.
pub fn share(rank: &RankFacts, inside: &[bool]) -> Option<f64> {
    let lost = |s: &Sampled| s.counts(&rank.weight);
    let writes = |s: &&Sampled| inside[s.slot] && lost(s) > 0.0;
    if !rank.doing.by_stacks || rank.sampled.iter().filter(writes).count() < FEWEST {
        return None;
    }
    let mut functions: HashMap<(&str, &str), Below> = HashMap::new();
    for s in &rank.sampled {
        let own: HashSet<(&str, &str)> = s.frames.iter().map(|f| (&*f.function, &*f.file)).collect();
        for function in own {
            let below = functions.entry(function).or_default();
            below.wall += s.factor;
            below.lost += lost(s);
            below.writing += if inside[s.slot] { lost(s) } else { 0.0 };
        }
    }
    let sum = |all: &mut dyn Iterator<Item = &Sampled>| all.map(lost).sum::<f64>();
    let enough = BELOW * sum(&mut rank.sampled.iter().filter(writes));
    let all = sum(&mut rank.sampled.iter());
    let saves = functions.into_values().filter(|below| below.writing >= enough);
    let saves = saves.min_by(|a, b| a.lost.total_cmp(&b.lost))?;
    let trains = saves.wall - saves.lost > BESIDE * saves.wall;
    (!trains && all > 0.0).then(|| saves.lost / all)
}
