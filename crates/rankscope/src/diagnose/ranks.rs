//! Which processes train: by what launchers say, by who uses a GPU, else by where Python begins.

use std::collections::HashMap;

use rankscope_core::diagnose::observations::{Process, Rank};
use rankscope_core::ranks::Place;

/// What is known of the processes beside their courses.
pub struct Signs<'a> {
    /// Of Python processes.
    pub places: &'a HashMap<u32, Place>,
    /// Processes that compute on a GPU.
    pub gpu_users: &'a [u32],
}

/// The ranks, in order; each process gets the index of the one that it is or belongs to.
pub fn assign(processes: &mut [Process], signs: &Signs) -> Vec<Rank> {
    let tree = Tree::of(processes);
    let mut ranks: Vec<(Option<u32>, u32)> = tree.said(processes, signs);
    if ranks.is_empty() {
        let users = signs
            .gpu_users
            .iter()
            .filter(|pid| tree.line(**pid).skip(1).all(|a| !signs.gpu_users.contains(&a)));
        ranks = users.map(|pid| (None, *pid)).collect();
    }
    if ranks.is_empty() {
        ranks.extend(tree.busiest_top(processes).map(|pid| (None, pid)));
    }
    ranks.sort_unstable();
    for process in processes.iter_mut() {
        process.rank = tree.line(process.pid).find_map(|pid| ranks.iter().position(|(_, rank)| *rank == pid));
    }
    ranks.into_iter().map(|(rank, pid)| Rank { rank, pid, gpus: Vec::new() }).collect()
}

struct Tree {
    parents: HashMap<u32, u32>,
}

impl Tree {
    fn of(processes: &[Process]) -> Tree {
        Tree { parents: processes.iter().map(|p| (p.pid, p.parent)).collect() }
    }

    /// The process, its parent, and so on, as far as they are of the job.
    fn line(&self, pid: u32) -> impl Iterator<Item = u32> {
        // A pid that was given out again could close a circle.
        let longest = self.parents.len() + 1;
        let known = |pid: &u32| self.parents.contains_key(pid);
        std::iter::successors(Some(pid).filter(known), move |pid| {
            self.parents.get(pid).copied().filter(known)
        })
        .take(longest)
    }

    fn is_below(&self, pid: u32, above: u32) -> bool {
        pid != above && self.line(pid).any(|a| a == above)
    }

    /// By variables. These are inherited, so the topmost process that has them is the rank, unless others stand below it:
    /// then it is their launcher.
    fn said(&self, processes: &[Process], signs: &Signs) -> Vec<(Option<u32>, u32)> {
        let known: Vec<(u32, (u32, _))> = processes
            .iter()
            .filter(|p| p.python)
            .filter_map(|p| {
                let place = signs.places.get(&p.pid)?;
                Some((p.pid, (place.rank?, place.launcher)))
            })
            .collect();
        let launches = |pid: u32, said| {
            known.iter().any(|(other, theirs)| *theirs != said && self.is_below(*other, pid))
        };
        let at_work: Vec<_> = known.iter().filter(|(pid, said)| !launches(*pid, *said)).collect();
        let inherits = |pid: u32, said| {
            at_work.iter().any(|(above, theirs)| *theirs == said && self.is_below(pid, *above))
        };
        let top = at_work.iter().filter(|(pid, said)| !inherits(*pid, *said));
        top.map(|(pid, (rank, _))| (Some(*rank), self.who_uses_a_gpu(*pid, signs.gpu_users))).collect()
    }

    /// A wrapper in Python has the variables too: the one below it that uses a GPU is the rank.
    fn who_uses_a_gpu(&self, pid: u32, users: &[u32]) -> u32 {
        let below: Vec<u32> = users.iter().copied().filter(|user| self.is_below(*user, pid)).collect();
        match below.as_slice() {
            [only] if !users.contains(&pid) => *only,
            _ => pid,
        }
    }

    /// Of the Python processes that have none above them the one whose tree computed most, else the newest.
    fn busiest_top(&self, processes: &[Process]) -> Option<u32> {
        let python = |pid: u32| processes.iter().any(|p| p.pid == pid && p.python);
        let top =
            processes.iter().filter(|p| p.python && self.line(p.pid).skip(1).all(|above| !python(above)));
        let used = |top: &Process| {
            let tree = processes.iter().filter(|p| p.pid == top.pid || self.is_below(p.pid, top.pid));
            tree.flat_map(|p| p.cpu.iter().flatten()).sum::<f32>()
        };
        let best = top.map(|p| (used(p).round(), p.started_s, p.pid));
        best.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))).map(|(.., pid)| pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankscope_core::ranks::Launcher;

    fn process(pid: u32, parent: u32, python: bool) -> Process {
        Process { pid, parent, python, ..Process::default() }
    }

    fn place(rank: u32, launcher: Launcher) -> Place {
        Place { rank: Some(rank), launcher: Some(launcher), ..Place::default() }
    }

    fn found(
        processes: &mut [Process],
        places: &[(u32, Place)],
        gpu_users: &[u32],
    ) -> Vec<(Option<u32>, u32)> {
        let places = places.iter().cloned().collect();
        let ranks = assign(processes, &Signs { places: &places, gpu_users });
        ranks.into_iter().map(|r| (r.rank, r.pid)).collect()
    }

    #[test]
    fn a_launcher_its_ranks_and_their_workers() {
        // bash → torchrun in a Slurm task → two ranks with a worker each.
        let mut all =
            [(1, 0), (2, 1), (10, 2), (11, 2), (20, 10), (21, 11)].map(|(p, q)| process(p, q, p != 1));
        let said = [
            (2, place(0, Launcher::Slurm)),
            (10, place(0, Launcher::Torchrun)),
            (11, place(1, Launcher::Torchrun)),
            (20, place(0, Launcher::Torchrun)),
            (21, place(1, Launcher::Torchrun)),
        ];
        assert_eq!(found(&mut all, &said, &[]), [(Some(0), 10), (Some(1), 11)]);
        assert_eq!(
            all.iter().map(|p| p.rank).collect::<Vec<_>>(),
            [None, None, Some(0), Some(1), Some(0), Some(1)]
        );
    }

    #[test]
    fn a_wrapper_has_the_variables_too() {
        let said = [(2, place(3, Launcher::Plain)), (3, place(3, Launcher::Plain))];
        let mut all = [(2, 1), (3, 2)].map(|(p, q)| process(p, q, true));
        assert_eq!(found(&mut all, &said, &[3]), [(Some(3), 3)]);
        assert_eq!(found(&mut all, &said, &[]), [(Some(3), 2)]);
    }

    #[test]
    fn without_variables_the_gpu_says_it_and_then_the_work() {
        let mut all = [(2, 1), (3, 2), (4, 3), (9, 1)].map(|(p, q)| process(p, q, p != 2));
        assert_eq!(found(&mut all, &[], &[3, 4]), [(None, 3)]);
        all[2].cpu = vec![Some(8.0); 5];
        all[3].started_s = 5.0;
        assert_eq!(found(&mut all, &[], &[]), [(None, 3)]);
        all[2].cpu.clear();
        assert_eq!(found(&mut all, &[], &[]), [(None, 9)]);
        assert!(found(&mut [process(2, 1, false)], &[], &[]).is_empty());
    }
}
