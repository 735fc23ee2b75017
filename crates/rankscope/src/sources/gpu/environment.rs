//! What a job's processes were started with, as far as it says which GPUs they see.

use crate::machine::Machine;

/// Of /proc/<pid>/environ, these names alone. What a process sets for itself later does not show there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    pub cuda_visible_devices: Option<String>,
    pub cuda_device_order: Option<String>,
    /// What was asked of the container runtime: no evidence of what it gave.
    pub nvidia_visible_devices: Option<String>,
    /// Where more than one rank is on this node.
    pub local_rank: Option<usize>,
}

/// `None`: the file can't be read, or the process has ended and has none any more.
pub fn of(machine: &Machine, pid: &str) -> Option<Environment> {
    let text = machine.read(&format!("/proc/{pid}/environ")).ok()?;
    (!text.is_empty()).then(|| parse(&text))
}

fn parse(environ: &[u8]) -> Environment {
    let text = |name: &str| {
        let entry =
            environ.split(|b| *b == 0).find_map(|e| e.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(String::from_utf8_lossy(entry).into_owned())
    };
    let number = |name: &str| text(name)?.trim().parse::<usize>().ok();
    let local = [
        ("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ("SLURM_LOCALID", "SLURM_NTASKS"),
    ];
    let rank = |(rank, size): (&str, &str)| number(rank).filter(|_| number(size).is_some_and(|n| n > 1));
    Environment {
        cuda_visible_devices: text("CUDA_VISIBLE_DEVICES"),
        cuda_device_order: text("CUDA_DEVICE_ORDER"),
        nvidia_visible_devices: text("NVIDIA_VISIBLE_DEVICES"),
        local_rank: local.into_iter().find_map(rank),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_count() {
        let e =
            parse(b"A=1\0XCUDA_VISIBLE_DEVICES=9\0CUDA_VISIBLE_DEVICES=\0LOCAL_RANK=3\0LOCAL_WORLD_SIZE=8\0");
        assert_eq!((e.cuda_visible_devices.as_deref(), e.local_rank), (Some(""), Some(3)));
        let alone = parse(b"LOCAL_RANK=0\0LOCAL_WORLD_SIZE=1\0SLURM_LOCALID=2\0SLURM_NTASKS=4\0");
        assert_eq!((alone.cuda_visible_devices, alone.local_rank), (None, Some(2)));
    }
}
