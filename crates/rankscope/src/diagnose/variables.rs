//! What a process was started with: of /proc/<pid>/environ the names on a list, and nothing else.

use std::collections::BTreeMap;

use rankscope_core::ranks;

use crate::machine::Machine;
use crate::marks;

/// Where caches of compiled code lie, and how they are limited.
const CACHES: [&str; 14] = [
    "HOME",
    "TMPDIR",
    "USER",
    "XDG_CACHE_HOME",
    "CUDA_CACHE_PATH",
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_MAXSIZE",
    "TRITON_HOME",
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES",
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_ENABLE_COMPILATION_CACHE",
    "XLA_FLAGS",
];
const OTHERS: [&str; 6] = [
    marks::ENVIRONMENT,
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MLFLOW_RUN_ID",
];

#[derive(Clone, Debug, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Empty where it is not for us to see.
    pub fn of(machine: &Machine, pid: u32) -> Variables {
        Variables::parse(&machine.read(&format!("/proc/{pid}/environ")).unwrap_or_default())
    }

    fn parse(environ: &[u8]) -> Variables {
        let known = |name: &str| ranks::variables().chain(CACHES).chain(OTHERS).any(|n| n == name);
        let entries = environ.split(|byte| *byte == 0).filter_map(|e| std::str::from_utf8(e).ok());
        let pairs = entries.filter_map(|entry| entry.split_once('=')).filter(|(name, _)| known(name));
        Variables(
            pairs
                .filter(|(_, value)| !value.trim().is_empty())
                .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
                .collect(),
        )
    }

    #[cfg(test)]
    pub fn of_text(text: &str) -> Variables {
        Variables::parse(text.replace(' ', "\0").as_bytes())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn place(&self) -> ranks::Place {
        ranks::place(&|name| self.get(name).map(str::to_owned))
    }
}

/// The MLflow run that the process writes into, as far as it was started with one.
pub fn run_of(machine: &Machine, pid: u32) -> Option<String> {
    Variables::of(machine, pid).get("MLFLOW_RUN_ID").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_what_is_on_the_list_is_kept() {
        let v = Variables::parse(b"AWS_SECRET=x\0RANK=3\0WORLD_SIZE=4\0CUDA_CACHE_PATH= /c \0HOME=\0odd\0");
        assert_eq!(v.0.len(), 3);
        assert_eq!((v.get("CUDA_CACHE_PATH"), v.get("HOME"), v.get("AWS_SECRET")), (Some("/c"), None, None));
        assert_eq!(v.place().rank, Some(3));
    }
}
