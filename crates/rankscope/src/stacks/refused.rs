//! Facts about a process whose stacks can't be read; which rule they amount to is in the core's `diagnose::refusal`.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rankscope_core::diagnose::observations::Refused;
use rankscope_core::diagnose::refusal::{Credentials, Denied, Facts, refusal};
use rankscope_core::diagnose::remedies::{Place, Pod, remedies};

use super::python;
use crate::env_vars;

/// A line of descent longer than this is none.
const MAX_ANCESTORS: usize = 10_000;
/// Who sees every user as what it is has the initial user namespace, where capabilities count everywhere.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

/// `None`: the process is gone.
pub fn why(pid: u32, name: &str) -> Option<Refused> {
    let root = Path::new("/");
    let denied = match access(pid) {
        Access::Gone => return None,
        Access::Allowed => None,
        Access::Denied(denied) => Some(denied),
    };
    let found = refusal(&facts(root, std::process::id(), pid, denied)?);
    Some(Refused {
        pid,
        name: name.to_owned(),
        rule: found.rule.as_str().to_owned(),
        detail: found.detail,
        remedies: remedies(found.rule, &place(root), pid),
    })
}

/// From /proc below `root`, for rankscope as process `own` of it. `None`: the process is not there.
pub fn facts(root: &Path, own: u32, pid: u32, denied: Option<Denied>) -> Option<Facts> {
    let proc = root.join("proc");
    let owner = fs::metadata(proc.join(pid.to_string())).ok()?.uid();
    let status = |pid: u32| fs::read_to_string(proc.join(format!("{pid}/status"))).ok();
    let scope = fs::read_to_string(proc.join("sys/kernel/yama/ptrace_scope")).ok();
    Some(Facts {
        pid,
        ptrace_scope: scope.and_then(|text| text.trim().parse().ok()),
        ours: status(own).and_then(|text| Credentials::parse(&text)).unwrap_or_default(),
        theirs: status(pid).and_then(|text| Credentials::parse(&text)),
        owner: Some(owner),
        ancestor: is_ancestor(&proc, own, pid),
        same_user_namespace: same_user_namespace(&proc, own, pid),
        denied,
        interpreter: python::interpreter(root, pid).ok(),
    })
}

fn is_ancestor(proc: &Path, own: u32, pid: u32) -> bool {
    let parent = |pid: u32| -> Option<u32> {
        let text = fs::read_to_string(proc.join(format!("{pid}/status"))).ok()?;
        text.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
    };
    std::iter::successors(Some(pid), |pid| parent(*pid)).take(MAX_ANCESTORS).any(|pid| pid == own)
}

fn same_user_namespace(proc: &Path, own: u32, pid: u32) -> Option<bool> {
    let map = fs::read_to_string(proc.join(format!("{own}/uid_map"))).ok()?;
    if map.split_whitespace().eq(ALL_USERS) {
        return Some(true);
    }
    let namespace = |pid: u32| fs::read_link(proc.join(format!("{pid}/ns/user"))).ok();
    Some(namespace(own)? == namespace(pid)?)
}

enum Access {
    Allowed,
    Denied(Denied),
    Gone,
}

/// Asks for a byte of its memory in both ways. The kernel judges who asks before where.
fn access(pid: u32) -> Access {
    let process_vm_readv = match read_byte(pid) {
        0 | libc::EFAULT => return Access::Allowed,
        libc::ESRCH => return Access::Gone,
        errno => errno,
    };
    match fs::File::open(format!("/proc/{pid}/mem")) {
        Ok(_) => Access::Allowed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Access::Gone,
        Err(error) => Access::Denied(Denied { process_vm_readv, mem: error.raw_os_error().unwrap_or(0) }),
    }
}

/// errno; 0: it was read.
fn read_byte(pid: u32) -> i32 {
    let mut byte = 0u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(0x1000), iov_len: 1 };
    let Ok(pid) = libc::pid_t::try_from(pid) else { return libc::ESRCH };
    // SAFETY: the local side is one byte of ours that outlives the call; the other side is an address of another process.
    match unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) } {
        -1 => io::Error::last_os_error().raw_os_error().unwrap_or(libc::EPERM),
        _ => 0,
    }
}

/// Names that commands need.
fn place(root: &Path) -> Place {
    let text = |path: &str| {
        let text = fs::read_to_string(root.join(path)).ok()?;
        Some(text.trim().to_owned()).filter(|t| !t.is_empty())
    };
    let namespace =
        text("var/run/secrets/kubernetes.io/serviceaccount/namespace").or_else(env_vars::pod_namespace);
    let pod = namespace.filter(|_| env_vars::in_kubernetes()).and_then(|namespace| {
        // The host name of a pod is its own, except with the node's network.
        let name = env_vars::pod_name().or_else(|| text("proc/sys/kernel/hostname"))?;
        Some(Pod { name, namespace, container: env_vars::container_name(), node: env_vars::node_name() })
    });
    let marked = ["run/.containerenv", ".dockerenv"].iter().any(|file| root.join(file).exists());
    Place { container: marked || pod.is_some(), pod }
}

#[cfg(test)]
mod tests {
    use rankscope_core::diagnose::refusal::Rule;

    use super::*;

    /// rankscope is process 7, the training 12 below 9, both of Docker's capabilities.
    fn tree(scope: &str, parent_of_9: u32) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = dir.path().join("proc").join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        };
        write("sys/kernel/yama/ptrace_scope", scope);
        for (pid, parent) in [(7, 1), (9, parent_of_9), (12, 9)] {
            let caps = "CapPrm:\t00000000a80425fb\nCapEff:\t00000000a80425fb\n";
            let ids = "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n";
            write(
                &format!("{pid}/status"),
                &format!("Pid:\t{pid}\nPPid:\t{parent}\n{ids}{caps}Seccomp:\t2\n"),
            );
            write(&format!("{pid}/uid_map"), "0 100000 65536\n");
            write(&format!("{pid}/maps"), "7f00-7f01 r-xp 0 08:01 12 /usr/lib/libpython3.11.so.1.0\n");
        }
        dir
    }

    #[track_caller]
    fn rule(scope: &str, parent_of_9: u32, denied: Option<Denied>) -> Rule {
        let dir = tree(scope, parent_of_9);
        let facts = facts(dir.path(), 7, 12, denied).expect("the process is there");
        assert_eq!(facts.interpreter.as_ref().and_then(|i| i.version), Some((3, 11)));
        refusal(&facts).rule
    }

    const DENIED: Option<Denied> = Some(Denied { process_vm_readv: libc::EPERM, mem: libc::EACCES });

    #[test]
    fn yama_and_descent() {
        assert_eq!(rule("1\n", 1, DENIED), Rule::PtraceScope(1));
        // An ancestor is not refused by scope 1, so it is the filter.
        assert_eq!(rule("1\n", 7, DENIED), Rule::Seccomp);
        assert_eq!(rule("2\n", 7, DENIED), Rule::PtraceScope(2));
        assert_eq!(rule("3\n", 7, DENIED), Rule::PtraceScope(3));
        assert_eq!(rule("0\n", 7, None), Rule::Unsupported);
    }

    #[test]
    fn a_process_that_is_not_there() {
        assert_eq!(facts(tree("0", 1).path(), 7, 13, None), None);
    }

    #[test]
    fn ourselves_and_nobody() {
        assert!(matches!(access(std::process::id()), Access::Allowed));
        assert!(matches!(access(u32::MAX), Access::Gone));
    }
}
