//! Which GPU is this rank's, from what the driver, the processes and their environment show.

use std::fmt;
use std::sync::Arc;

use super::visible::Visible;

/// How sure it is that a GPU is this rank's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Nothing speaks for it.
    #[default]
    None,
    /// A convention: rank n of a node takes the nth GPU.
    Convention,
    /// It is the only one that the rank can see.
    OnlyVisible,
    /// The driver listed a process of the rank on it.
    Listed,
}

impl Confidence {
    pub const fn as_str(self) -> &'static str {
        match self {
            Confidence::None => "none",
            Confidence::Convention => "convention",
            Confidence::OnlyVisible => "only visible",
            Confidence::Listed => "listed",
        }
    }
}

/// What is known of a GPU's users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub confidence: Confidence,
    /// Pids of the rank's processes on it, as we see them.
    pub own_pids: Vec<u32>,
    /// Bytes of GPU memory of these.
    pub own_memory: Option<u64>,
    /// Processes of others that are seen here.
    pub others: u32,
    /// Pids that name no process here: of another pid namespace, most often the host's.
    pub unmatched: u32,
    /// It is visible to the rank's CUDA.
    pub visible: Option<bool>,
}

/// One process that the driver lists, as far as it is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The process of the rank that it is.
    pub own: Option<u32>,
    /// A process with that pid is here, though none of the rank's.
    pub here: bool,
    pub memory: Option<u64>,
}

/// What speaks about one GPU.
pub struct Evidence<'a> {
    /// UUIDs of the GPU and its instances.
    pub uuids: &'a [Arc<str>],
    /// Index among the node's GPUs that can be seen here.
    pub index: usize,
    pub listed: &'a [Listed],
    /// What the rank's CUDA sees; `None`: its environment can't be read.
    pub visible: Option<&'a Visible>,
    /// LOCAL_RANK, where more than one rank is on this node.
    pub local_rank: Option<usize>,
}

pub fn judge(evidence: &Evidence) -> Owner {
    let own: Vec<&Listed> = evidence.listed.iter().filter(|l| l.own.is_some()).collect();
    let mut own_pids: Vec<u32> = own.iter().filter_map(|l| l.own).collect();
    own_pids.sort_unstable();
    own_pids.dedup();
    let is = |uuid: &String| evidence.uuids.iter().any(|u| **u == **uuid);
    let visible = evidence.visible.map(|v| v.uuids.iter().any(is));
    let convention = || match (evidence.local_rank, evidence.visible) {
        // With several visible, rank n takes the nth that it sees.
        (Some(rank), Some(v)) if v.uuids.len() > 1 => v.uuids.get(rank).is_some_and(is),
        (Some(rank), None) => rank == evidence.index,
        _ => false,
    };
    let only =
        evidence.visible.is_some_and(|v| v.uuids.len() == 1 && v.unsure.is_none()) && visible == Some(true);
    let confidence = match () {
        () if !own_pids.is_empty() => Confidence::Listed,
        () if only => Confidence::OnlyVisible,
        () if convention() => Confidence::Convention,
        () => Confidence::None,
    };
    let memory: Vec<u64> = own.iter().filter_map(|l| l.memory).collect();
    Owner {
        confidence,
        own_memory: (!own.is_empty() && memory.len() == own.len()).then(|| memory.iter().sum()),
        others: count(evidence.listed, |l| l.own.is_none() && l.here),
        unmatched: count(evidence.listed, |l| l.own.is_none() && !l.here),
        visible,
        own_pids,
    }
}

fn count(listed: &[Listed], which: impl Fn(&Listed) -> bool) -> u32 {
    u32::try_from(listed.iter().filter(|l| which(l)).count()).unwrap_or(u32::MAX)
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.confidence {
            Confidence::Listed => "this rank's: the driver listed a process of it",
            Confidence::OnlyVisible => "this rank's: the only GPU that its CUDA sees",
            Confidence::Convention => "taken for this rank's by LOCAL_RANK; no process of it is listed",
            Confidence::None if self.visible == Some(false) => "not visible to this rank's CUDA",
            Confidence::None => "nobody's that is known: no process of this rank is listed on it",
        })?;
        if self.others > 0 {
            write!(f, "; {} of others use it too", processes(self.others))?;
        }
        if self.unmatched > 0 {
            write!(f, "; {} by pids that are not of this pid namespace", processes(self.unmatched))?;
        }
        Ok(())
    }
}

fn processes(n: u32) -> String {
    if n == 1 { "1 process".to_owned() } else { format!("{n} processes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(index: usize, listed: &[Listed], list: Option<&[&str]>, local_rank: Option<usize>) -> Owner {
        let uuids = [Arc::from(format!("GPU-{index}"))];
        let visible =
            list.map(|l| Visible { uuids: l.iter().map(|u| (*u).to_owned()).collect(), unsure: None });
        judge(&Evidence { uuids: &uuids, index, listed, visible: visible.as_ref(), local_rank })
    }

    #[test]
    fn the_stronger_evidence_wins() {
        let mine = [Listed { own: Some(7), here: true, memory: Some(100) }];
        let all: &[&str] = &["GPU-0", "GPU-1"];
        assert_eq!(owner(1, &mine, Some(all), Some(0)).confidence, Confidence::Listed);
        assert_eq!(owner(1, &mine, Some(all), None).own_memory, Some(100));
        assert_eq!(owner(1, &[], Some(&["GPU-1"]), None).confidence, Confidence::OnlyVisible);
        assert_eq!(owner(1, &[], Some(all), Some(1)).confidence, Confidence::Convention);
        assert_eq!(owner(0, &[], Some(all), Some(1)).confidence, Confidence::None);
        assert_eq!(owner(0, &[], Some(all), None).confidence, Confidence::None);
        let hidden = owner(0, &[], Some(&["GPU-1"]), None);
        assert_eq!(hidden.to_string(), "not visible to this rank's CUDA");
    }

    #[test]
    fn pids_of_the_host_are_said_to_be_unknown() {
        let host = [Listed { own: None, here: false, memory: Some(1) }];
        let other = Listed { own: None, here: true, memory: None };
        let owner = owner(0, &[host[0], host[0], other], None, None);
        assert_eq!((owner.unmatched, owner.others, owner.own_memory), (2, 1, None));
        assert!(owner.to_string().contains("2 processes by pids that are not of this pid namespace"));
    }
}
