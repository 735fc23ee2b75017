//! The graphics processor of a Jetson, of which NVML knows the name alone: its load and temperature are in sysfs.

use std::sync::Arc;

use rankscope_core::gap::{Gap, Measured};
use rankscope_core::gpu::{Activity, Gpu, Spread};
use rankscope_core::identity;
use rankscope_core::parse::single;
use rankscope_core::reading::Origin;
use rankscope_core::sample::Raw;

use crate::machine::Machine;
use crate::sources::host::Host;

const PLATFORM: &str = "/sys/devices/platform";
const THERMAL: &str = "/sys/class/thermal";

/// Files that stand for it.
pub struct Jetson {
    load: Arc<Origin>,
    /// Where its thermal zone shows.
    temperature: Option<Arc<Origin>>,
}

impl Jetson {
    pub fn find(machine: &Machine, host: &Host) -> Option<Jetson> {
        let load = load_file(machine)?;
        let identity = host.boot_id.as_deref().map(|boot| identity::gpu(&format!("{boot}:{load}")));
        let origin = |source: String| {
            Arc::new(Origin { identity: identity.clone(), source: source.into(), level: None, note: None })
        };
        Some(Jetson { temperature: thermal_file(machine).map(&origin), load: origin(load) })
    }

    pub fn files(machine: &Machine) -> Vec<String> {
        let zone = thermal_file(machine);
        let kind = zone.as_ref().map(|path| path.replace("/temp", "/type"));
        load_file(machine).into_iter().chain(zone).chain(kind).collect()
    }

    /// One alone, where NVML can't be asked.
    pub fn alone(&self, machine: &Machine) -> Gpu {
        let gap = Gap::absent("sysfs shows load and temperature of this GPU and nothing else");
        let mut gpu = Gpu::missing("0".into(), &self.load, &gap);
        gpu.name = "integrated".into();
        self.fill(machine, &mut gpu);
        gpu
    }

    /// What NVML does not give.
    pub fn fill(&self, machine: &Machine, gpu: &mut Gpu) {
        if gpu.utilization.value.is_err() {
            let load = read(machine, &self.load).and_then(|per_mille| match per_mille {
                0..=1000 => Ok(per_mille as f64 / 10.0),
                odd => Err(Gap::broken(format!("{}: {odd} is no share of 1000", self.load.source))),
            });
            let power = gpu.power.value.as_ref().ok().map(|p| p.mean);
            gpu.activity = Activity::default();
            gpu.activity.add(load.as_ref().ok().copied(), power);
            let value = load.map(|percent| Spread { mean: percent, max: percent });
            gpu.utilization = Raw { value, read_ns: None, origin: self.load.clone() };
        }
        if let Some(origin) = self.temperature.as_ref().filter(|_| gpu.temperature.value.is_err()) {
            let value = read(machine, origin).map(|millis| millis as f64 / 1000.0);
            gpu.temperature = Raw { value, read_ns: None, origin: origin.clone() };
        }
    }
}

fn read(machine: &Machine, origin: &Origin) -> Measured<u64> {
    let text = machine.read(&origin.source)?;
    single(&text).map_err(|_| Gap::broken(format!("{}: not a number", origin.source)))
}

/// `gpu.0` on Orin and before, `17000000.gpu` on younger kernels.
fn load_file(machine: &Machine) -> Option<String> {
    let fixed = ["/sys/devices/gpu.0/load".to_owned(), format!("{PLATFORM}/gpu.0/load")];
    let by_address = machine.list(PLATFORM).into_iter().filter(|name| name.ends_with(".gpu"));
    let by_address = by_address.map(|name| format!("{PLATFORM}/{name}/load"));
    fixed.into_iter().chain(by_address).find(|path| machine.exists(path))
}

fn thermal_file(machine: &Machine) -> Option<String> {
    let mut zones = machine.list(THERMAL);
    zones.sort_unstable();
    let is_gpus = |zone: &String| {
        let kind = machine.read(&format!("{THERMAL}/{zone}/type")).unwrap_or_default();
        String::from_utf8_lossy(&kind).to_ascii_lowercase().starts_with("gpu")
    };
    let zone = zones.into_iter().filter(|z| z.starts_with("thermal_zone")).find(is_gpus)?;
    Some(format!("{THERMAL}/{zone}/temp"))
}
