//! The thread that talks to the driver, and the box in which it leaves the newest reading. A call that never comes
//! back stops this thread alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::gpu::{Fault, Gpu};

use super::device::Device;
use super::health::Health;
use super::nvml::{Nvml, XidEvents};
use super::refused::{Answer, LIB_RM_VERSION_MISMATCH, Refused};
use super::versions;

/// Between rounds, unless the driver is slow: then at most a twentieth of the time is spent in it.
const EVERY: Duration = Duration::from_millis(200);
const PAUSE_PER_ROUND: u32 = 20;
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const FIRST_REOPEN: Duration = Duration::from_secs(1);
const LAST_REOPEN: Duration = Duration::from_secs(60);
const XIDS_EVERY: Duration = Duration::from_secs(1);
const STACK: usize = 256 << 10;

/// A thread is, or may be, inside the driver's library.
static ALIVE: AtomicBool = AtomicBool::new(false);

/// Whether leaving the process in the usual way, which unloads libraries, could meet a thread that is in one.
pub fn alive() -> bool {
    ALIVE.load(Ordering::SeqCst)
}

/// The newest reading.
#[derive(Clone)]
pub struct Latest {
    pub list: Measured<Vec<Gpu>>,
    pub at: Instant,
    /// The next one is due so long after it.
    pub pause: Duration,
}

#[derive(Default)]
struct State {
    latest: Option<Latest>,
    taken: bool,
    faults: Vec<Fault>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    came: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sampler's end of it.
pub struct Reader {
    shared: Arc<Shared>,
    pub started: Instant,
    /// Dropped with the reader, which ends the thread after its call.
    _stop: Sender<()>,
}

impl Reader {
    /// `closer`: for a diagnosis, in rounds of this length.
    pub fn start(names: Vec<String>, closer: Option<Duration>) -> std::io::Result<Reader> {
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = mpsc::channel();
        let theirs = shared.clone();
        std::thread::Builder::new().name("rankscope-gpu".to_owned()).stack_size(STACK).spawn(move || {
            ALIVE.store(true, Ordering::SeqCst);
            run(&names, closer, &theirs, &stopped);
            ALIVE.store(false, Ordering::SeqCst);
        })?;
        Ok(Reader { shared, started: Instant::now(), _stop: stop })
    }

    /// The newest reading, which holds everything since the one that was taken before, and what went wrong.
    pub fn take(&self) -> (Option<Latest>, Vec<Fault>) {
        let mut state = self.shared.lock();
        state.taken = true;
        (state.latest.clone(), std::mem::take(&mut state.faults))
    }

    /// Waits for the first reading.
    pub fn wait(&self, limit: Duration) {
        let state = self.shared.lock();
        drop(self.shared.came.wait_timeout_while(state, limit, |s| s.latest.is_none()));
    }
}

/// An initialised library.
struct Open {
    devices: Vec<Device>,
    events: Option<XidEvents>,
    xids_due: Instant,
}

fn run(names: &[String], closer: Option<Duration>, shared: &Shared, stopped: &Receiver<()>) {
    let every = closer.unwrap_or(EVERY);
    let mut reopen = FIRST_REOPEN;
    let mut open: Option<Open> = None;
    let mut nvml: Option<Nvml> = None;
    // One word for one outage, however its errors change.
    let mut told = false;
    loop {
        let began = Instant::now();
        let result = read(names, closer.is_some(), &mut nvml, &mut open, began);
        let pause = match &result {
            Ok(slept) => {
                (reopen, told) = (FIRST_REOPEN, false);
                (began.elapsed().saturating_sub(*slept) * PAUSE_PER_ROUND).clamp(every, LONGEST_PAUSE)
            }
            Err(_) => {
                let pause = reopen;
                reopen = (reopen * 2).min(LAST_REOPEN);
                pause
            }
        };
        let mut state = shared.lock();
        let anew = std::mem::take(&mut state.taken);
        let list = match (&result, &mut open) {
            (Ok(_), Some(open)) => {
                for device in &mut open.devices {
                    device.settle(anew);
                    state.faults.append(&mut device.faults);
                }
                Ok(open.devices.iter().map(Device::gpu).collect())
            }
            (Ok(_), None) => Ok(Vec::new()),
            (Err(gap), _) => {
                if !std::mem::replace(&mut told, true) {
                    let fault =
                        Fault { kind: "gpu_driver", label: None, uuid: None, detail: gap.detail.clone() };
                    state.faults.push(fault);
                }
                Err(gap.clone())
            }
        };
        state.latest = Some(Latest { list, at: Instant::now(), pause });
        drop(state);
        shared.came.notify_all();
        match stopped.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if let Some(nvml) = nvml {
        close(&nvml, open);
    }
}

/// One round; opens the library first where that is needed, and closes it when nothing answers any more. Gives the time
/// that was slept in it.
fn read(
    names: &[String],
    closer: bool,
    nvml: &mut Option<Nvml>,
    open: &mut Option<Open>,
    now: Instant,
) -> Result<Duration, Gap> {
    if nvml.is_none() {
        let loaded = Nvml::load(names).map_err(|e| Gap::absent(format!("library not found: {e}")))?;
        *nvml = Some(loaded);
    }
    let Some(library) = nvml.as_ref() else { return Ok(Duration::ZERO) };
    if open.is_none() {
        *open = Some(Open::new(library, closer, now)?);
    }
    let Some(known) = open.as_mut() else { return Ok(Duration::ZERO) };
    let rounds: Vec<Health> = known.devices.iter_mut().map(|d| d.round(library, now)).collect();
    known.xids(library, now);
    // All of them: a single GPU that fails does not make the driver ill.
    let ill = rounds.iter().filter(|health| health.all_ill()).count();
    let asked = rounds.iter().filter(|health| health.asked > 0).count();
    match rounds.iter().find_map(|health| health.ill.first()) {
        Some(refused) if ill > 0 && ill == asked => {
            let gap = Gap::new(Reason::Broken, format!("the driver does not answer any more: {refused}"));
            close(library, open.take());
            Err(gap)
        }
        _ => Ok(rounds.iter().map(|health| health.slept).sum()),
    }
}

fn close(nvml: &Nvml, open: Option<Open>) {
    let Some(open) = open else { return };
    if let Some(events) = open.events {
        nvml.free(events);
    }
    nvml.shutdown();
}

impl Open {
    fn new(nvml: &Nvml, closer: bool, now: Instant) -> Result<Open, Gap> {
        nvml.init().map_err(|refused| cannot_start(&refused))?;
        let mut devices =
            devices(nvml, now).inspect_err(|_| nvml.shutdown()).map_err(|refused| refused.gap())?;
        if closer {
            devices.iter_mut().for_each(Device::look_closer);
        }
        let handles: Vec<_> = devices.iter().map(Device::handle).collect();
        let events = nvml.xid_events(&handles).ok();
        Ok(Open { devices, events, xids_due: now })
    }

    fn xids(&mut self, nvml: &Nvml, now: Instant) {
        let Some(events) = self.events.as_ref().filter(|_| now >= self.xids_due) else { return };
        self.xids_due = now + XIDS_EVERY;
        for _ in 0..64 {
            let Ok((handle, xid)) = nvml.next_xid(events) else { break };
            if let Some(device) = self.devices.iter_mut().find(|d| d.handle() == handle) {
                device.xid(xid);
            }
        }
    }
}

/// One that gives no handle is left out, and the others keep their indices; where none gives one, nothing is open.
fn devices(nvml: &Nvml, now: Instant) -> Answer<Vec<Device>> {
    let count = nvml.count()?.min(256);
    let mut all = Vec::new();
    let mut refused = None;
    for index in 0..count {
        match Device::new(nvml, index, now) {
            Ok(device) => all.push(device),
            Err(why) => refused = Some(why),
        }
    }
    refused.filter(|_| all.is_empty()).map_or(Ok(all), Err)
}

fn cannot_start(refused: &Refused) -> Gap {
    let versions = match refused.code() {
        Some(LIB_RM_VERSION_MISMATCH) => versions::both(),
        _ => None,
    };
    let versions = versions.map(|v| format!(": {v}")).unwrap_or_default();
    Gap { detail: format!("{refused}{versions}").into(), ..refused.gap() }
}
