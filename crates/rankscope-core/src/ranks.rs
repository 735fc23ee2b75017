//! Which rank a process is, from the variables that launchers set; and how sets of ranks are written.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Who said which rank a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    Torchrun,
    OpenMpi,
    Pmix,
    Pmi,
    Slurm,
    Jax,
    /// `RANK`, which Accelerate, DeepSpeed and Ray Train set too, and which may be baked into an image.
    Plain,
}

/// A process's place in its job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub rank: Option<u32>,
    /// Ranks in the job.
    pub world_size: Option<u32>,
    /// Who said so.
    pub launcher: Option<Launcher>,
    /// Variables that say something else, in words.
    pub conflict: Option<String>,
}

/// What a recorder above a launcher sees of the processes below. A rank that a program sets inside itself is not visible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Below {
    pub ranks: BTreeSet<u32>,
    pub world_size: Option<u32>,
    /// A program that starts ranks is among them.
    pub launcher: bool,
}

struct Variables {
    launcher: Launcher,
    rank: &'static str,
    size: &'static str,
    /// Without this one the rank is somebody else's.
    mark: Option<&'static str>,
}

/// The innermost launcher first: what is inherited from one further out is that one's own count (a Slurm task that runs
/// torchrun or mpirun).
const LAUNCHERS: [Variables; 7] = [
    of(Launcher::Torchrun, "RANK", "WORLD_SIZE", Some(TORCHRUN)),
    of(Launcher::OpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", None),
    of(Launcher::Pmix, "PMIX_RANK", "PMIX_SIZE", None),
    of(Launcher::Pmi, "PMI_RANK", "PMI_SIZE", None),
    of(Launcher::Slurm, "SLURM_PROCID", "SLURM_NTASKS", None),
    of(Launcher::Jax, "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", None),
    of(Launcher::Plain, "RANK", "WORLD_SIZE", None),
];
const TORCHRUN: &str = "TORCHELASTIC_RUN_ID";

const fn of(
    launcher: Launcher,
    rank: &'static str,
    size: &'static str,
    mark: Option<&'static str>,
) -> Variables {
    Variables { launcher, rank, size, mark }
}

/// Every variable that is looked at.
pub fn variables() -> impl Iterator<Item = &'static str> {
    LAUNCHERS.iter().flat_map(|l| [l.rank, l.size]).chain([TORCHRUN])
}

/// A launcher's own variable beats a `RANK` that may have been baked into an image.
pub fn place(text: &dyn Fn(&str) -> Option<String>) -> Place {
    let number = |name: &str| text(name)?.trim().parse::<u32>().ok();
    let applies = |l: &&Variables| l.mark.is_none_or(|mark| text(mark).is_some());
    let first = LAUNCHERS.iter().filter(applies).find_map(|l| Some((l, number(l.rank)?)));
    let sized = |l: &Variables| number(l.size).map(|size| (l.size, size));
    // Without a rank, or where its launcher gives no size, the first size that there is.
    let size = first.and_then(|(l, _)| sized(l)).or_else(|| LAUNCHERS.iter().filter(applies).find_map(sized));
    let differs = |used: &str, value: u32, plain: &str| {
        let other = number(plain).filter(|other| *other != value && used != plain)?;
        Some(format!("{used}={value} is taken, {plain}={other} is not the launcher's"))
    };
    let conflicts = [
        first.and_then(|(l, rank)| differs(l.rank, rank, "RANK")),
        size.and_then(|(name, size)| differs(name, size, "WORLD_SIZE")),
    ];
    let conflict = conflicts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    Place {
        rank: first.map(|(_, rank)| rank),
        world_size: size.map(|(_, size)| size),
        launcher: first.map(|(l, _)| l.launcher),
        conflict: Some(conflict).filter(|c| !c.is_empty()),
    }
}

/// The same of another process, from /proc/<pid>/environ. Nothing else of it is looked at.
pub fn place_of(environ: &[u8]) -> Place {
    place(&|name| {
        environ.split(|byte| *byte == 0).find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            std::str::from_utf8(value).ok().map(str::to_owned).filter(|v| !v.trim().is_empty())
        })
    })
}

/// Whether a command line (words that end with 0) is that of a program that starts ranks.
pub fn is_launcher(command_line: &[u8]) -> bool {
    const PROGRAMS: [&str; 9] = [
        "torchrun",
        "accelerate",
        "deepspeed",
        "mpirun",
        "mpiexec",
        "mpiexec.hydra",
        "orterun",
        "prterun",
        "srun",
    ];
    const MODULES: [&str; 4] =
        ["torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed"];
    let words: Vec<&str> =
        command_line.split(|byte| *byte == 0).take(8).filter_map(|w| std::str::from_utf8(w).ok()).collect();
    let name = |word: &&str| PROGRAMS.contains(&word.rsplit('/').next().unwrap_or(word));
    // A script comes after its interpreter, and that after `env`.
    words.iter().take(3).any(name)
        || words.windows(2).any(|pair| pair[0] == "-m" && MODULES.contains(&pair[1]))
}

/// `0-3,5`
pub fn in_short(ranks: &BTreeSet<u32>) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match spans.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*rank) => *last = *rank,
            _ => spans.push((*rank, *rank)),
        }
    }
    let one = |(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    spans.iter().map(one).collect::<Vec<_>>().join(",")
}

/// The same back. Who writes odd things is not believed.
pub fn parse(text: &str) -> Option<BTreeSet<u32>> {
    /// More ranks than any job has.
    const MOST: u32 = 1 << 20;
    let mut ranks = BTreeSet::new();
    for part in text.split(',') {
        let (a, b) = part.split_once('-').unwrap_or((part, part));
        let (a, b): (u32, u32) = (a.parse().ok()?, b.parse().ok()?);
        if a > b || b >= MOST {
            return None;
        }
        ranks.extend(a..=b);
    }
    Some(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environ(text: &str) -> Place {
        place_of(text.replace(' ', "\0").as_bytes())
    }

    #[test]
    fn a_launchers_own_variable_wins_and_the_conflict_is_told() {
        let slurm = environ("RANK=0 WORLD_SIZE=1 SLURM_PROCID=5 SLURM_NTASKS=8");
        assert_eq!((slurm.rank, slurm.world_size, slurm.launcher), (Some(5), Some(8), Some(Launcher::Slurm)));
        assert_eq!(
            slurm.conflict.as_deref(),
            Some(
                "SLURM_PROCID=5 is taken, RANK=0 is not the launcher's; SLURM_NTASKS=8 is taken, WORLD_SIZE=1 is \
                 not the launcher's"
            )
        );
        assert_eq!(environ("RANK=5 SLURM_PROCID=5").conflict, None);
    }

    #[test]
    fn what_is_inherited_from_a_launcher_further_out_is_no_conflict() {
        let torch = environ("SLURM_PROCID=1 SLURM_NTASKS=2 RANK=11 WORLD_SIZE=16 TORCHELASTIC_RUN_ID=none");
        assert_eq!((torch.rank, torch.world_size, torch.conflict), (Some(11), Some(16), None));
        let mpi = environ("SLURM_PROCID=0 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4");
        assert_eq!((mpi.rank, mpi.launcher, mpi.conflict), (Some(3), Some(Launcher::OpenMpi), None));
    }

    #[test]
    fn without_a_rank_and_with_odd_ones() {
        assert_eq!(environ(""), Place::default());
        assert_eq!(environ("WORLD_SIZE=4").world_size, Some(4));
        assert_eq!(environ("RANK=x SLURM_PROCID=-1 PMI_RANK="), Place::default());
        assert_eq!(environ("XRANK=3 RANKX=4"), Place::default());
        assert_eq!(environ("JAX_PROCESS_ID=2 JAX_NUM_PROCESSES=4").rank, Some(2));
    }

    #[test]
    fn launchers() {
        let is = |text: &str| is_launcher(text.replace(' ', "\0").as_bytes());
        assert!(is("/usr/bin/python3 /usr/local/bin/torchrun --nproc-per-node 2 train.py"));
        assert!(is("python -u -m torch.distributed.run train.py") && is("mpirun -n 4 a.out"));
        assert!(is("env python3 /opt/torchrun") && is("torchrun"));
        assert!(!is("python -u train.py torchrun") && !is("bash") && !is(""));
    }

    #[test]
    fn sets_of_ranks() {
        let set = |ranks: &[u32]| ranks.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(in_short(&set(&[0, 1, 2, 5, 7, 8])), "0-2,5,7-8");
        assert_eq!(parse("0-2,5,7-8"), Some(set(&[0, 1, 2, 5, 7, 8])));
        assert_eq!([parse(""), parse("3-1"), parse("0-4294967295"), parse("x")], [None, None, None, None]);
    }
}
