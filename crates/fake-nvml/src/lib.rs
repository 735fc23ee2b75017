//! `libnvidia-ml.so.1` without a GPU: the C symbols of NVML that rankscope, nvidia-ml-py and MLflow call.
//!
//! `FAKE_NVML` names the scenario (TOML, see fixtures/nvml). `FAKE_NVML_STATE` names a file that a program may change
//! while the library is loaded (`state`). `FAKE_NVML_TIMELINE` names a file to which jobs write what they run and when
//! (`timeline`): utilisation, power and the processes' shares then follow from it, unless the state says otherwise.
//! `FAKE_NVML_LOG` names a file that gets a line for each call.
//!
//! Shares its struct types with the one who calls it, so it can't show that these are right: a test compares their
//! sizes with nvidia-ml-py's.

mod device;
mod exports;
mod fault;
mod mapped;
mod scenario;
mod state;
mod timeline;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use fault::Faults;
use scenario::Scenario;
use state::State;
use timeline::Timeline;

/// What one loaded library is.
pub(crate) struct Library {
    pub scenario: Scenario,
    pub state: Option<State>,
    pub timeline: Option<Timeline>,
    faults: Mutex<Faults>,
}

impl Library {
    /// Made at the first call: a scenario that can't be read ends the test at once.
    pub fn get() -> &'static Library {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        LIBRARY.get_or_init(|| {
            let path = std::env::var_os("FAKE_NVML").expect("FAKE_NVML names no scenario");
            let text = std::fs::read_to_string(&path).expect("the scenario can't be read");
            let scenario: Scenario = toml::from_str(&text).expect("the scenario is not sound");
            let state = std::env::var_os("FAKE_NVML_STATE").map(|path| State::open(&path));
            let timeline = std::env::var_os("FAKE_NVML_TIMELINE").map(|path| Timeline::open(&path));
            Library { scenario, state, timeline, faults: Mutex::default() }
        })
    }

    pub fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
