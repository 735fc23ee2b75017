use super::*;

const DOCKER: u64 = 0xa804_25fb;

fn credentials(pid: u32, uid: u32, capabilities: u64) -> Credentials {
    Credentials {
        pid,
        uids: [uid; 3],
        gids: [uid; 3],
        permitted: capabilities,
        effective: capabilities,
        seccomp: false,
    }
}

/// Docker's capabilities on both sides, the same user, a sibling, Python 3.11; nothing may be read.
fn facts() -> Facts {
    Facts {
        pid: 12,
        ptrace_scope: Some(0),
        ours: credentials(7, 0, DOCKER),
        theirs: Some(credentials(12, 0, DOCKER)),
        owner: Some(0),
        ancestor: false,
        same_user_namespace: Some(true),
        denied: Some(Denied { process_vm_readv: 1, mem: 13 }),
        interpreter: Some(Interpreter::of("/usr/bin/python3.11", "")),
    }
}

#[track_caller]
fn says(facts: &Facts, rule: Rule, words: &[&str]) {
    let refusal = refusal(facts);
    assert_eq!(refusal.rule, rule, "{}", refusal.detail);
    for word in words {
        assert!(refusal.detail.contains(word), "{word:?} not in {}", refusal.detail);
    }
}

#[test]
fn b_scope_1_and_no_ancestor() {
    let facts = Facts { ptrace_scope: Some(1), ..facts() };
    says(&facts, Rule::PtraceScope(1), &["ptrace_scope is 1", "pid 7", "process 12", "CAP_SYS_PTRACE"]);
}

#[test]
fn c_scope_2_binds_ancestors_too_and_3_everybody() {
    says(&Facts { ptrace_scope: Some(2), ancestor: true, ..facts() }, Rule::PtraceScope(2), &["is 2"]);
    let all = credentials(7, 0, u64::MAX);
    says(&Facts { ptrace_scope: Some(3), ours: all, ..facts() }, Rule::PtraceScope(3), &["is 3"]);
}

#[test]
fn e_seccomp_only_when_nothing_else_explains_it() {
    let filtered = Credentials { seccomp: true, ..credentials(7, 0, DOCKER) };
    let denied = Some(Denied { process_vm_readv: 38, mem: 13 });
    let facts = Facts { ours: filtered, denied, ..facts() };
    says(&facts, Rule::Seccomp, &["seccomp", "38", "13"]);
    says(&Facts { ptrace_scope: Some(1), ..facts }, Rule::PtraceScope(1), &[]);
}

#[test]
fn f_another_user() {
    let facts = Facts { ours: credentials(7, 65534, 0), ..facts() };
    says(&facts, Rule::Uid, &["belongs to uid 0", "runs as uid 65534"]);
    let mut group = facts.clone();
    group.ours.uids = [0; 3];
    says(&group, Rule::Uid, &["gid 65534"]);
    // Its saved user alone is enough.
    let mut saved = credentials(12, 65534, 0);
    saved.uids[2] = 0;
    says(&Facts { theirs: Some(saved), ..facts }, Rule::Uid, &[]);
}

#[test]
fn g_an_orphan_is_nobodys_descendant() {
    says(
        &Facts { ptrace_scope: Some(1), ancestor: false, ..facts() },
        Rule::PtraceScope(1),
        &["did not start"],
    );
}

#[test]
fn a_process_that_made_itself_unreadable() {
    let plain = credentials(7, 1000, 0);
    let target = Some(credentials(12, 1000, 0));
    let owned =
        Facts { ours: plain.clone(), theirs: target.clone(), owner: Some(0), ancestor: true, ..facts() };
    says(&owned, Rule::NonDumpable, &["process 12", "PR_SET_DUMPABLE"]);
    // Of root's processes the owner tells nothing, but mapped files are denied too, which Yama never does.
    says(&Facts { interpreter: None, ..facts() }, Rule::NonDumpable, &[]);
    says(&Facts { interpreter: None, ptrace_scope: Some(1), ..facts() }, Rule::NonDumpable, &[]);
}

#[test]
fn a_process_with_more_capabilities() {
    says(&Facts { ours: credentials(7, 0, 0), ..facts() }, Rule::Capability, &["0xa80425fb"]);
    let mut facts = facts();
    facts.theirs = Some(credentials(12, 0, DOCKER | 1 << 21));
    says(&facts, Rule::Capability, &["0x200000"]);
}

#[test]
fn capable_in_our_user_namespace_only() {
    let capable = Facts { ours: credentials(7, 0, u64::MAX), ..facts() };
    says(&capable, Rule::SecurityModule, &["AppArmor", "errno 1 and 13"]);
    let theirs = Some(credentials(12, 1000, 0));
    says(&Facts { same_user_namespace: Some(false), theirs, ..capable }, Rule::Uid, &[]);
}

#[test]
fn nothing_known_of_the_target() {
    let facts = Facts { theirs: None, owner: None, interpreter: None, ptrace_scope: None, ..facts() };
    says(&facts, Rule::NonDumpable, &[]);
}

fn readable(exe: &str, maps: &str) -> Facts {
    Facts { denied: None, interpreter: Some(Interpreter::of(exe, maps)), ..facts() }
}

#[test]
fn readable_but_no_python_that_we_know() {
    says(&readable("/usr/bin/bash", ""), Rule::NotPython, &["process 12"]);
    says(&readable("/usr/bin/python3.13t", ""), Rule::Unsupported, &["free-threaded CPython 3.13t"]);
    says(&readable("/usr/bin/python3.16", ""), Rule::Unsupported, &["CPython 3.16", "up to 3.15"]);
    says(&readable("/opt/pypy3.10", ""), Rule::Unsupported, &["PyPy"]);
    let deleted = "7f00-7f01 r-xp 0 08:01 12 /u/lib/libpython3.11.so.1.0 (deleted)\n";
    says(
        &readable("/u/bin/python3.11", deleted),
        Rule::Unsupported,
        &["/u/lib/libpython3.11.so.1.0 was deleted"],
    );
    let musl = "7f00-7f01 r-xp 0 08:01 12 /lib/ld-musl-x86_64.so.1\n";
    says(&readable("/usr/bin/python3.12", musl), Rule::Unsupported, &["3.12", "musl"]);
}

#[test]
fn credentials_of_a_status_file() {
    let status = "Name:\tpython3\nPid:\t42\nUid:\t1000\t1001\t1002\t1003\nGid:\t5\t6\t7\t8\nCapPrm:\t00000000a80425fb\nCapEff:\t0000000000080000\nSeccomp:\t2\nSeccomp_filters:\t1\n";
    let found = Credentials::parse(status).expect("all there");
    assert_eq!((found.pid, found.uids, found.gids), (42, [1000, 1001, 1002], [5, 6, 7]));
    assert_eq!((found.permitted, found.effective, found.seccomp), (DOCKER, SYS_PTRACE, true));
    assert_eq!(Credentials::parse("Pid:\t42\n"), None);
}
