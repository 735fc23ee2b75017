//! The end of the job: what the supervisor, the sampler, the kernel and the job itself tell of it, put together.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rankscope_core::ending::{Asked, Ending, Evidence, Exit, Reason, Traceback, decide};
use rankscope_core::parse::keyed::{self, Field};

use crate::machine::Machine;
use crate::store::{Event, Record};
use crate::supervise::{Ended, ExitKind};
use crate::{clock, env_vars};

/// Kind of the event that holds an `Ending`.
pub const EVENT: &str = "end";
/// Kind of the event that says: the process goes on, and is not recorded any more.
pub const UNWATCHED: &str = "watch_ended";
/// Kubernetes shows the last 4096 bytes of it as the container's message.
const TERMINATION_LOG: &str = "/dev/termination-log";
const TERMINATION_BYTES: u64 = 4096;
/// Slurm's KillWait and what its daemons are late.
const SLURM_NEAR_S: i64 = 90;
/// Of an error file that the job wrote.
const ERROR_FILE_BYTES: u64 = 1 << 20;

/// Processes that the node's OOM killer has killed since boot; `None` before Linux 4.13 and in sandboxes.
pub fn node_oom_kills() -> Option<u64> {
    let text = Machine::live().read("/proc/vmstat").ok()?;
    match keyed::lookup(&text, ["oom_kill"]) {
        [Field::Value(kills)] => Some(kills),
        _ => None,
    }
}

/// What is known of an end beside its samples.
pub struct Seen {
    pub exit: Exit,
    /// The call that told of it.
    pub told_by: &'static str,
    pub asked: Option<Asked>,
    /// What the samples tell; `None`: the last one did not come.
    pub samples: Option<Evidence>,
    /// `node_oom_kills` before the start.
    pub node_kills_before: Option<u64>,
    pub start_unix_ms: i64,
    /// As the job itself told it.
    pub traceback: Option<Traceback>,
}

pub fn ending(seen: Seen) -> Ending {
    let mut evidence = seen.samples.unwrap_or_default();
    (evidence.exit, evidence.told_by, evidence.asked) = (seen.exit, seen.told_by, seen.asked);
    evidence.ended_unix_ms = clock::unix_ms();
    evidence.oom.node_kills =
        node_oom_kills().zip(seen.node_kills_before).map(|(now, then)| now.saturating_sub(then));
    if evidence.exit != Exit::Code(0) {
        evidence.traceback = error_file(seen.start_unix_ms).or(seen.traceback);
    }
    decide(&evidence)
}

pub fn exit_of(ended: &Ended) -> Exit {
    match ended.status {
        ExitKind::Exited(code) => Exit::Code(i32::from(code)),
        ExitKind::Signaled { signal, core_dumped } => Exit::Signal { signal, core_dumped },
        ExitKind::Unknown => Exit::Unseen,
    }
}

/// The last request to end that came to us.
pub fn asked(ended: &Ended) -> Option<Asked> {
    let requests = ended.signals.iter().rev();
    requests.filter(|s| matches!(s.signal, libc::SIGTERM | libc::SIGINT)).find_map(|signal| {
        let since = signal.at.duration_since(UNIX_EPOCH).ok()?;
        let unix_ms = i64::try_from(since.as_millis()).ok()?;
        Some(Asked {
            signal: signal.signal,
            unix_ms,
            sender: signal.sender,
            sender_name: signal.sender_name.clone(),
            time_limit: time_limit(unix_ms),
        })
    })
}

/// Slurm asks half a minute or so around the end of a job's time.
fn time_limit(unix_ms: i64) -> Option<String> {
    let end = env_vars::slurm_end_time()?;
    let near = (unix_ms / 1000).saturating_sub(end).abs() <= SLURM_NEAR_S;
    near.then(|| "the Slurm job".to_owned())
}

/// What torchrun's `@record` wrote about an exception, if it is of this attempt.
fn error_file(start_unix_ms: i64) -> Option<Traceback> {
    const NAME: &str = "TORCHELASTIC_ERROR_FILE";
    let path = env_vars::error_file()?;
    let mut file = regular(Path::new(&path))?;
    let written = file.metadata().ok()?.modified().ok()?;
    let started = UNIX_EPOCH + Duration::from_millis(u64::try_from(start_unix_ms).ok()?);
    if written + Duration::from_secs(1) < started {
        return None;
    }
    let mut text = String::new();
    Read::by_ref(&mut file).take(ERROR_FILE_BYTES).read_to_string(&mut text).ok()?;
    let json: serde_json::Value = serde_json::from_str(&text).ok()?;
    let message = json.get("message")?;
    let call_stack = message.pointer("/extraInfo/py_callstack").and_then(|v| v.as_str()).unwrap_or_default();
    let words = message.get("message").or(Some(message)).and_then(|v| v.as_str()).unwrap_or_default();
    Traceback::last_in(call_stack, NAME).or_else(|| {
        let (exception, text) = words.split_once(": ").unwrap_or((words, ""));
        Some(Traceback::new(exception, text, None, NAME)).filter(|t| !t.exception.is_empty())
    })
}

/// A file that is none of those whose opening or reading may wait for ever.
fn regular(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// As it is kept in the record.
pub fn event(ending: &Ending) -> Event {
    Event {
        unix_ms: ending.ended_unix_ms,
        boottime_ns: clock::boottime_ns(),
        kind: EVENT.to_owned(),
        detail: serde_json::to_value(ending).unwrap_or_default(),
    }
}

/// We end, and the process goes on.
pub fn unwatched() -> Event {
    Event {
        unix_ms: clock::unix_ms(),
        boottime_ns: clock::boottime_ns(),
        kind: UNWATCHED.to_owned(),
        detail: serde_json::json!({}),
    }
}

/// As it was kept; `None`: no end was seen.
pub fn of(record: &Record, detail: Option<serde_json::Value>) -> Option<Ending> {
    let attempt = &record.attempt;
    let unix_ms = attempt.ended_unix_ms?;
    if let Some(ending) = detail.and_then(|detail| serde_json::from_value(detail).ok()) {
        return Some(ending);
    }
    // The disk took the end but not the words.
    let exit = match (attempt.exit_code, attempt.signal) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal { signal, core_dumped: false },
        (None, None) => Exit::Unseen,
    };
    let mut ending = decide(&Evidence { exit, ended_unix_ms: unix_ms, ..Evidence::default() });
    if let Some(reason) = attempt.reason.as_deref().and_then(Reason::of) {
        ending.reason = reason;
    }
    Some(ending)
}

/// Leaves one line where the container's runtime looks for it, behind what the job itself may have written there.
pub fn write_termination_log(ending: &Ending) {
    if ending.reason == Reason::Completed && ending.warnings.is_empty() {
        return;
    }
    let line = verdict_line(ending);
    let open = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(TERMINATION_LOG);
    let Ok(mut file) = open else { return };
    let Ok(meta) = file.metadata() else { return };
    if !meta.is_file() || meta.len() + line.len() as u64 + 1 > TERMINATION_BYTES {
        return;
    }
    let mut last = [b'\n'];
    if meta.len() > 0 && file.seek(SeekFrom::End(-1)).is_ok() {
        let _ = file.read_exact(&mut last);
    }
    let before = if last == [b'\n'] { "" } else { "\n" };
    // Nobody can be told of a failure here.
    let _ = file.seek(SeekFrom::End(0)).and_then(|_| file.write_all(format!("{before}{line}\n").as_bytes()));
}

/// `rankscope: oom_killed: …`.
pub fn verdict_line(ending: &Ending) -> String {
    let mut line = format!("rankscope: {}: {}", ending.reason.as_str(), ending.detail);
    ending.warnings.iter().for_each(|warning| line.push_str(&format!("; warning: {warning}")));
    line
}
