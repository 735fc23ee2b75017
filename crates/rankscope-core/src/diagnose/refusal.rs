//! Why a process' memory can't be read, or has no Python stacks: the one rule that forbids it.
//!
//! The kernel asks in this order (`__ptrace_may_access`): the own process always; same user and group; dumpable;
//! capabilities a subset of ours; Yama. CAP_SYS_PTRACE passes all but Yama's scope 3 and a seccomp filter.

use super::interpreter::{Interpreter, NEWEST};

/// What decides, read from /proc by rankscope.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub pid: u32,
    /// kernel.yama.ptrace_scope; `None`: no Yama.
    pub ptrace_scope: Option<u32>,
    pub ours: Credentials,
    /// `None`: could not be read.
    pub theirs: Option<Credentials>,
    /// Who owns /proc/<pid>: root for a process that is not dumpable.
    pub owner: Option<u32>,
    /// We are the process, its parent, its parent's parent, ….
    pub ancestor: bool,
    /// Capabilities count only in the own user namespace; `None`: can't be seen.
    pub same_user_namespace: Option<bool>,
    /// `None`: it can be read.
    pub denied: Option<Denied>,
    /// What its mapped files say; `None`: they are denied too.
    pub interpreter: Option<Interpreter>,
}

/// errno of both ways to read memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Denied {
    pub process_vm_readv: i32,
    pub mem: i32,
}

/// Of /proc/<pid>/status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    pub pid: u32,
    /// Real, effective, saved.
    pub uids: [u32; 3],
    pub gids: [u32; 3],
    pub permitted: u64,
    pub effective: u64,
    /// System calls are filtered.
    pub seccomp: bool,
}

const SYS_PTRACE: u64 = 1 << 19;

impl Credentials {
    pub fn parse(status: &str) -> Option<Credentials> {
        let after = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let three = |key: &str| {
            let mut words = after(key)?.split_whitespace().map(|word| word.parse().ok());
            Some([words.next()??, words.next()??, words.next()??])
        };
        let bits = |key: &str| u64::from_str_radix(after(key)?, 16).ok();
        Some(Credentials {
            pid: after("Pid:")?.parse().ok()?,
            uids: three("Uid:")?,
            gids: three("Gid:")?,
            permitted: bits("CapPrm:")?,
            effective: bits("CapEff:")?,
            seccomp: after("Seccomp:") == Some("2"),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub rule: Rule,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Uid,
    NonDumpable,
    Capability,
    PtraceScope(u32),
    Seccomp,
    /// None of these, so AppArmor, SELinux or the like.
    SecurityModule,
    Unsupported,
    NotPython,
}

impl Rule {
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::Uid => "uid",
            Rule::NonDumpable => "non_dumpable",
            Rule::Capability => "capability",
            Rule::PtraceScope(_) => "ptrace_scope",
            Rule::Seccomp => "seccomp",
            Rule::SecurityModule => "security_module",
            Rule::Unsupported => "unsupported",
            Rule::NotPython => "not_python",
        }
    }

    /// The process may not be read; the others say that there is nothing that we understand.
    pub fn is_about_rights(self) -> bool {
        !matches!(self, Rule::Unsupported | Rule::NotPython)
    }
}

pub fn refusal(facts: &Facts) -> Refusal {
    let (rule, detail) = match &facts.denied {
        Some(denied) => forbidden(facts, *denied),
        None => not_understood(facts),
    };
    Refusal { rule, detail }
}

fn forbidden(facts: &Facts, denied: Denied) -> (Rule, String) {
    let (ours, pid) = (&facts.ours, facts.pid);
    let none = Credentials::default();
    let theirs = facts.theirs.as_ref();
    let capable = ours.effective & SYS_PTRACE != 0 && facts.same_user_namespace != Some(false);
    if let Some(scope @ 3..) = facts.ptrace_scope {
        let detail = format!("kernel.yama.ptrace_scope is {scope}: no process may read another's memory");
        return (Rule::PtraceScope(scope), detail);
    }
    if capable {
        return filtered(ours, denied);
    }
    if let Some(theirs) = theirs.filter(|theirs| !same_user(ours, theirs)) {
        let detail = format!(
            "process {pid} belongs to {}, rankscope runs as {} and has no CAP_SYS_PTRACE",
            users(theirs),
            users(ours)
        );
        return (Rule::Uid, detail);
    }
    let non_dumpable = || {
        let detail = format!(
            "process {pid} has made itself unreadable (PR_SET_DUMPABLE 0, or it was started with other rights): only CAP_SYS_PTRACE helps"
        );
        (Rule::NonDumpable, detail)
    };
    let effective = theirs.unwrap_or(&none).uids[1];
    if theirs.is_some() && effective != 0 && facts.owner == Some(0) {
        return non_dumpable();
    }
    let more = theirs.unwrap_or(&none).permitted & !ours.permitted;
    if more != 0 {
        let detail = format!(
            "process {pid} has capabilities that rankscope has not (CapPrm bits {more:#x}), and rankscope no CAP_SYS_PTRACE"
        );
        return (Rule::Capability, detail);
    }
    // Yama forbids memory only, not the names of mapped files.
    if facts.interpreter.is_none() {
        return non_dumpable();
    }
    match facts.ptrace_scope {
        Some(2) => {
            let detail = "kernel.yama.ptrace_scope is 2: only CAP_SYS_PTRACE may read another process' memory, and rankscope has not got it";
            return (Rule::PtraceScope(2), detail.to_owned());
        }
        Some(1) if !facts.ancestor => {
            let detail = format!(
                "kernel.yama.ptrace_scope is 1: only an ancestor may read a process' memory. rankscope (pid {}) did not start process {pid}, and has no CAP_SYS_PTRACE",
                ours.pid
            );
            return (Rule::PtraceScope(1), detail);
        }
        _ => {}
    }
    filtered(ours, denied)
}

fn filtered(ours: &Credentials, denied: Denied) -> (Rule, String) {
    let Denied { process_vm_readv, mem } = denied;
    if ours.seccomp {
        let detail = format!(
            "system calls of rankscope are filtered (seccomp): process_vm_readv fails with errno {process_vm_readv}, /proc/<pid>/mem with {mem}"
        );
        return (Rule::Seccomp, detail);
    }
    let detail = format!(
        "the kernel refuses (errno {process_vm_readv} and {mem}) for no reason of user, capability, ptrace_scope or seccomp: AppArmor, SELinux or the like"
    );
    (Rule::SecurityModule, detail)
}

/// All of its ids are our real ones.
fn same_user(ours: &Credentials, theirs: &Credentials) -> bool {
    theirs.uids.iter().all(|id| *id == ours.uids[0]) && theirs.gids.iter().all(|id| *id == ours.gids[0])
}

fn users(who: &Credentials) -> String {
    format!("uid {} gid {}", who.uids[1], who.gids[1])
}

fn not_understood(facts: &Facts) -> (Rule, String) {
    let Some(python) = facts.interpreter.as_ref().filter(|python| python.is_python()) else {
        return (Rule::NotPython, format!("process {} runs no Python that can be seen in it", facts.pid));
    };
    let detail = if python.pypy {
        "PyPy is not supported by this sampler".to_owned()
    } else if let Some((major, minor)) = python.version.filter(|_| python.free_threaded) {
        format!("free-threaded CPython {major}.{minor}t is not supported by this sampler")
    } else if let Some((major, minor)) = python.version.filter(|version| *version > NEWEST) {
        format!(
            "CPython {major}.{minor} is not supported by this sampler, which knows up to {}.{}",
            NEWEST.0, NEWEST.1
        )
    } else if let Some(file) = &python.deleted {
        format!("{file} was deleted or replaced after the process started, so its symbols can't be read")
    } else {
        let kind = if python.musl { " linked with musl" } else { "" };
        let version = python.version.map_or(String::new(), |(major, minor)| format!(" {major}.{minor}"));
        format!(
            "no interpreter was found in its memory: CPython{version}{kind}, perhaps static, frozen, without symbols or not yet started"
        )
    };
    (Rule::Unsupported, detail)
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
