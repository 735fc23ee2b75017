//! docs/metrics.md, made of the one table.

use std::fmt::Write;

use crate::series::{ALL, Scope, Series};

const HEAD: &str = "\
# Metrics

Made of the table in `crates/rankscope-core/src/series.rs`; a test fails when the two differ, and rewrites this file
with `RANKSCOPE_BLESS=1 cargo test -p rankscope --test it metrics_page`.

A name begins with its scope: whose resource the number measures (`training_step` and `training_epoch` measure none). `system/<subject>/<name>` is the key in MLflow, where
the subject says which identity of that scope. Two readings with one identity are the same thing, and are written once.
A value that is not there is missing with a reason, never 0.

cgroup v2 has memory, io and pids since Linux 4.5, cpu since 4.15, cpuset since 5.0; what needs a younger kernel says
so. Which version counts is decided per controller, since both can be mounted.

| word | meaning |
|---|---|
| gauge | goes up and down; a window keeps its mean, minimum, maximum and last value |
| counter | only grows; a window's value is its last one |
| constant | set by somebody; a sink gets it when it changes |
| core | delivered to every sink by default |
| all | delivered to a sink that was asked for all series |
| store | stays in the local store |
";

/// The whole page.
pub fn metrics_markdown() -> String {
    let mut page = HEAD.to_owned();
    for scope in
        [Scope::Container, Scope::Process, Scope::Pod, Scope::Rootfs, Scope::Mount, Scope::Gpu, Scope::Node]
    {
        section(&mut page, scope);
    }
    page
}

// Writing to a String can't fail.
fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = page.write_fmt(text);
    page.push('\n');
}

fn section(page: &mut String, scope: Scope) {
    line(page, format_args!("\n## {}\n\n{}", scope.as_str(), whose(scope)));
    for series in ALL.iter().filter(|s| s.scope == scope) {
        block(page, series);
    }
}

fn block(page: &mut String, series: &Series) {
    line(page, format_args!("\n### `{}`\n\n{}.\n", series.name, upper_first(series.about)));
    let (kind, class) = (series.kind.as_str(), series.class.as_str());
    line(page, format_args!("- {}, {kind}, {class}", series.unit));
    match series.v2 {
        "" => line(page, format_args!("- from `{}`", series.v1)),
        v2 => line(page, format_args!("- from `{}` on cgroup v1, `{v2}` on v2", series.v1)),
    }
    if let Some(since) = series.since {
        line(page, format_args!("- since {since}"));
    }
    if let Some(not) = series.not {
        line(page, format_args!("- **not** {not}"));
    }
}

fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Whose resource, and what makes two readings the same thing.
fn whose(scope: Scope) -> &'static str {
    match scope {
        Scope::Container => {
            "The cgroup of the process, where it isolates: not the real root, nor a login session without any limit.\n\
             The level that a value belongs to is named with it.\n\n\
             **Identity**: per controller (boot id, device and inode of the cgroup's directory), the same seen from\n\
             inside and from the host."
        }
        Scope::Process => {
            "The process tree of one rank.\n\n\
             **Identity**: (boot id, pid namespace, pid, start time) of its first process."
        }
        Scope::Pod => {
            "A network namespace of its own, shared by the containers of a pod. In the host's namespace the same\n\
             numbers are the node's, and are called so.\n\n\
             **Identity**: (boot id, inode of the network namespace)."
        }
        Scope::Rootfs => {
            "The file system under `/`.\n\n\
             **Identity**: for an overlay (boot id, the runtime's store in `upperdir=`, fragment size, blocks), since\n\
             the device number differs per container although the disk is one; else (boot id, device)."
        }
        Scope::Mount => {
            "Another file system: /dev/shm, those asked for with `--mount LABEL=PATH`, and network file systems on\n\
             which the job has files open.\n\n\
             **Identity**: of a network file system (type, source), whatever node asks; else (boot id, device)."
        }
        Scope::Gpu => {
            "A device. `<i>` is its index in the container, as NVML counts; of one of several MIG instances of a GPU\n\
             it is `<i>_mig_<n>`. What is the whole board's under MIG is called so or missing.\n\n\
             **Identity**: the UUID of the GPU; of a MIG instance's memory the UUID of the instance."
        }
        Scope::Node => {
            "The whole machine: every process on it counts, whoever reads. Missing (`virtualised`) where the kernel is\n\
             a sandbox's or a file is covered by lxcfs.\n\n\
             **Identity**: the boot id; where that is covered or a sandbox's, the name in NODE_NAME."
        }
    }
}
