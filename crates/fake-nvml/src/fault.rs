//! Injected failures: which call goes wrong, how, and from which call on.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::Library;
use crate::device::Handle;

static HANGS: AtomicBool = AtomicBool::new(false);

/// Calls that each fault of the scenario has seen.
#[derive(Default)]
pub struct Faults {
    seen: Vec<u64>,
}

/// How a call goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Course {
    Well,
    AllOnes,
    Fails(u32),
}

/// What the scenario says about this call; sleeps and hangs happen here.
pub fn course(call: &str, handle: Option<Handle>) -> Course {
    let library = Library::get();
    log(call);
    if let Some(code) = handle.and_then(|h| library.state.as_ref()?.code(h.gpu)) {
        return Course::Fails(code);
    }
    let fits = |f: &&(usize, &crate::scenario::Fault)| {
        let (_, fault) = f;
        let named = if fault.call.is_empty() { !opens(call) } else { call.contains(&fault.call) };
        let gpu = fault.gpu.is_none_or(|gpu| handle.is_some_and(|h| h.gpu == gpu));
        let mig = fault.mig.is_none_or(|mig| handle.is_some_and(|h| h.mig.is_some() == mig));
        named && gpu && mig
    };
    let all: Vec<_> = library.scenario.fault.iter().enumerate().collect();
    for (at, fault) in all.iter().filter(fits) {
        let mut faults = library.faults();
        faults.seen.resize(all.len(), 0);
        let seen = faults.seen[*at];
        faults.seen[*at] += 1;
        drop(faults);
        let over = fault.for_calls.is_some_and(|n| seen >= fault.after_calls + n);
        if seen < fault.after_calls || over {
            continue;
        }
        std::thread::sleep(Duration::from_millis(fault.sleep_ms));
        if fault.hang {
            hang();
        }
        if fault.all_ones {
            return Course::AllOnes;
        }
        if fault.code != 0 {
            return Course::Fails(fault.code);
        }
    }
    if handle.is_some_and(|h| library.state.as_ref().is_some_and(|s| s.hangs(h.gpu))) {
        hang();
    }
    Course::Well
}

fn opens(call: &str) -> bool {
    ["nvmlInit", "nvmlShutdown", "nvmlSystem"].iter().any(|name| call.starts_with(name))
}

fn log(call: &str) {
    let Some(path) = std::env::var_os("FAKE_NVML_LOG") else { return };
    if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) {
        let _ = writeln!(file, "{call}");
    }
}

fn hang() -> ! {
    HANGS.store(true, Ordering::SeqCst);
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// A library whose lock is held by the call that hangs can't be unloaded either.
extern "C" fn unload() {
    if HANGS.load(Ordering::SeqCst) {
        hang();
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;
