//! The table of reasons; the first that matches wins.

use super::shell::{BUS, KILL, signal_of};
use super::words;
use super::{Ending, Evidence, Exit, Oom, OomKills, Reason};

/// A job that ends so long after the last OOM kill has most often ended because of it: a launcher that gives up.
const AFTER_KILL_MS: i64 = 60_000;
/// A job that ends so long after a request to end has ended because of it.
const AFTER_REQUEST_MS: i64 = 600_000;
/// /dev/shm counts as full from here on.
const SHM_FULL: f64 = 99.0;

pub fn decide(seen: &Evidence) -> Ending {
    let (exit_code, signal) = match seen.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal { signal, .. } => (None, Some(signal)),
        Exit::Hidden | Exit::Unseen => (None, None),
    };
    let reason = reason(seen);
    let oom = match seen.oom.kills {
        Some(0) => Oom::No,
        Some(_) => Oom::Yes,
        None => Oom::CannotTell,
    };
    let level = seen.oom.kills.filter(|n| *n > 0).map(|_| seen.oom.level());
    Ending {
        reason,
        exit_code,
        signal,
        ended_unix_ms: seen.ended_unix_ms,
        oom,
        oom_kills: OomKills { processes: seen.oom.kills, level },
        detail: words::detail(seen, reason),
        evidence: words::evidence(seen),
        warnings: words::warnings(seen, reason),
    }
}

fn reason(seen: &Evidence) -> Reason {
    let code = match seen.exit {
        Exit::Code(0) => return Reason::Completed,
        Exit::Unseen => return Reason::Lost,
        Exit::Code(code) => Some(code),
        Exit::Signal { .. } | Exit::Hidden => None,
    };
    let signal = match seen.exit {
        Exit::Signal { signal, .. } => Some(signal),
        _ => code.and_then(signal_of),
    };
    let killed = seen.oom.kills.is_some_and(|n| n > 0);
    let lately =
        seen.oom.last_kill_unix_ms.is_some_and(|at| seen.ended_unix_ms.saturating_sub(at) <= AFTER_KILL_MS);
    let asked = seen
        .asked
        .as_ref()
        .is_some_and(|asked| seen.ended_unix_ms.saturating_sub(asked.unix_ms) <= AFTER_REQUEST_MS);
    let bus = signal == Some(BUS) || seen.traceback.as_ref().is_some_and(|t| t.tells_of_bus_error);
    let shm_full = bus && seen.shm_percentage.is_some_and(|share| share >= SHM_FULL);
    match &seen.traceback {
        _ if signal == Some(KILL) && killed => Reason::OomKilled,
        _ if asked => Reason::Terminated,
        _ if killed && lately => Reason::OomKilled,
        _ if seen.exit == Exit::Hidden => Reason::Lost,
        _ if shm_full => Reason::ShmFull,
        Some(traceback) if traceback.is_cuda_oom => Reason::CudaOom,
        Some(_) if signal.is_none() => Reason::PythonException,
        _ if signal.is_some() => Reason::Signal,
        _ => Reason::ExitCode,
    }
}
