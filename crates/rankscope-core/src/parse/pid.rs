//! Files of one process: /proc/<pid>/stat, status, io, smaps_rollup.

use super::keyed::{self, Field};
use super::{Malformed, number, tokens};

/// include/linux/sched.h
const PF_EXITING: u64 = 4;

/// /proc/<pid>/stat (proc_pid_stat(5)). Times in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    pub pid: u32,
    /// At most 15 bytes; may hold blanks, parentheses and newlines.
    pub comm: &'a [u8],
    pub ppid: u32,
    pub state: char,
    /// It is on its way out (PF_EXITING): a big one takes long to give its memory back.
    pub exiting: bool,
    /// Own user and system time.
    pub cpu_ticks: u64,
    /// The same of children that were waited for.
    pub children_ticks: u64,
    pub threads: u64,
    /// Ticks after boot; 0: unknown.
    pub start_ticks: u64,
    pub rss_pages: u64,
}

/// Before the name, the name, after it.
fn split_comm(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    // The name is whatever lies between the first `(` and the last `)`.
    let open = line.iter().position(|b| *b == b'(')?;
    let close = line.iter().rposition(|b| *b == b')')?;
    (open < close).then(|| (&line[..open], &line[open + 1..close], &line[close + 1..]))
}

/// A number of the line by its place in proc_pid_stat(5), from 3 on.
pub fn number_at(line: &[u8], field: usize) -> Option<u64> {
    let (.., after) = split_comm(line)?;
    number(tokens(after).nth(field.checked_sub(3)?)?)
}

/// A line made up by an emulator (qemu-user fills in only pid, name and parent) is `Malformed`: its zeros say nothing.
pub fn stat(line: &[u8]) -> Result<Stat<'_>, Malformed> {
    let bad = |expected| Malformed { line: 1, expected };
    let (before, comm, after) = split_comm(line).ok_or(bad("pid (name) state …"))?;
    let pid = number(before.trim_ascii()).and_then(|n| u32::try_from(n).ok()).ok_or(bad("a pid"))?;
    let mut fields = tokens(after);
    let state = match fields.next() {
        Some([letter]) if letter.is_ascii_alphabetic() => char::from(*letter),
        _ => return Err(bad("a state letter")),
    };
    let mut next = |skip: usize| fields.nth(skip).and_then(signed);
    // Numbers as in the manual page: ppid (4), flags (9), utime (14) … cstime (17), num_threads (20), starttime (22), rss (24).
    let ppid = next(0).and_then(|n| u32::try_from(n).ok()).ok_or(bad("ppid"))?;
    let flags = next(4).unwrap_or(0);
    let mut field = |skip, expected| next(skip).ok_or(bad(expected));
    let utime = field(4, "utime")?;
    let stime = field(0, "stime")?;
    let cutime = field(0, "cutime")?;
    let cstime = field(0, "cstime")?;
    let threads = field(2, "num_threads")?;
    let start_ticks = field(1, "starttime")?;
    let rss_pages = field(1, "rss")?;
    Ok(Stat {
        pid,
        comm,
        ppid,
        state,
        exiting: flags & PF_EXITING != 0,
        cpu_ticks: utime.saturating_add(stime),
        children_ticks: cutime.saturating_add(cstime),
        threads,
        start_ticks,
        rss_pages,
    })
}

/// Some of these fields are printed with a sign; none is negative in a sound line, and one that is counts as 0.
fn signed(token: &[u8]) -> Option<u64> {
    match token.strip_prefix(b"-") {
        Some(rest) => number(rest).map(|_| 0),
        None => number(token),
    }
}

/// /proc/<pid>/status: VmRSS (kB), Threads, PPid.
pub fn status(text: &[u8]) -> [Field; 3] {
    keyed::lookup(text, ["VmRSS:", "Threads:", "PPid:"])
}

/// /proc/<pid>/status: the name, and RssAnon, RssFile, RssShmem (kB; Linux 4.5).
pub fn held(text: &[u8]) -> Option<(&[u8], [u64; 3])> {
    let name = text.strip_prefix(b"Name:")?.split(|b| *b == b'\n').next()?.trim_ascii();
    let fields = keyed::lookup(text, ["RssAnon:", "RssFile:", "RssShmem:"]);
    let [Some(anon), Some(file), Some(shmem)] = fields.map(Field::value) else { return None };
    Some((name, [anon, file, shmem]))
}

/// `Cpus_allowed_list` of /proc/<pid>/status: the affinity mask, as sched_getaffinity(2) gives it.
pub fn cpus_allowed(text: &[u8]) -> Option<super::cpu_list::CpuSet> {
    let (_, line) = super::lines(text).find(|(_, l)| l.starts_with(b"Cpus_allowed_list:"))?;
    super::cpu_list::parse(&line[b"Cpus_allowed_list:".len()..])
}

/// /proc/<pid>/io: rchar and wchar, bytes; children that were waited for are included.
pub fn io(text: &[u8]) -> [Field; 2] {
    keyed::lookup(text, ["rchar:", "wchar:"])
}

/// /proc/<pid>/smaps_rollup: Pss in kB.
pub fn smaps_rollup(text: &[u8]) -> Field {
    let [pss] = keyed::lookup(text, ["Pss:"]);
    pss
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "R 4200 4242 4200 0 -1 4194304 100 0 3 0 1234 56 0 0 20 0 7 0 987654 10608640 187 18446744073709551615 1";

    #[test]
    fn a_name_may_hold_anything() {
        for name in ["pt_data (0) x", "a\nb", ") R 1 (", ""] {
            let line = format!("4242 ({name}) {TAIL}");
            let s = stat(line.as_bytes()).unwrap();
            assert_eq!(s.comm, name.as_bytes());
            assert_eq!((s.state, s.ppid, s.cpu_ticks, s.threads), ('R', 4200, 1290, 7));
            assert_eq!((s.start_ticks, s.rss_pages), (987_654, 187));
            assert_eq!(
                (number_at(line.as_bytes(), 24), number_at(line.as_bytes(), 26)),
                (Some(187), Some(1))
            );
            assert_eq!((number_at(line.as_bytes(), 2), number_at(line.as_bytes(), 52)), (None, None));
        }
    }

    #[test]
    fn what_a_process_holds() {
        let text = b"Name:\tpt data\nUmask:\t0022\nRssAnon:\t  10 kB\nRssFile:\t 20 kB\nRssShmem:\t 30 kB\n";
        assert_eq!(held(text), Some((b"pt data".as_slice(), [10, 20, 30])));
        // A kernel thread, and a process that is just ending, have none.
        assert_eq!(held(b"Name:\tkthreadd\nState:\tS\n"), None);
    }

    #[test]
    fn a_process_on_its_way_out() {
        let line = format!("4242 (x) {}", TAIL.replace("4194304", "4195588"));
        assert!(stat(line.as_bytes()).unwrap().exiting);
        assert!(!stat(format!("4242 (x) {TAIL}").as_bytes()).unwrap().exiting);
    }

    #[test]
    fn an_emulated_line_says_nothing() {
        assert!(
            stat(b"94 (python) 0 36 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 274900000000 0").is_err()
        );
        assert!(stat(b"94 (python").is_err());
    }
}
