//! One GPU as its driver shows it, read in rounds; what a tick gets is everything since the tick before.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rankscope_core::gap::{Gap, Measured, Reason};
use rankscope_core::gpu::{Fault, Gpu, GpuProcess, Owner, Pcie};

use super::asked::Asked;
use super::closer::CloserLook;
use super::health::Health;
use super::history::History;
use super::instance::Instance;
use super::nvml::{self, Handle, Nvml};
use super::origins::{Origins, not_yet, pending, raw};
use super::refused::Answer;
use super::since::Since;

/// A GPU that is lost is looked for again so soon.
const LOST_PAUSE: Duration = Duration::from_secs(30);
/// What changes slowly is asked this often.
const SLOW_EVERY: Duration = Duration::from_secs(1);
/// A question that takes 40 ms.
const THROUGHPUT_EVERY: Duration = Duration::from_secs(10);

pub struct Device {
    handle: Handle,
    label: Arc<str>,
    uuid: Option<Arc<str>>,
    name: Arc<str>,
    minor: Option<u32>,
    mig: bool,
    instances: Vec<Instance>,
    origins: Origins,
    questions: Questions,
    histories: [History; 2],
    slow_due: Instant,
    throughput_due: Instant,
    pcie_before: Option<(Instant, u64, u64)>,
    round: Since,
    /// Since the tick before.
    since: Since,
    values: Values,
    /// Of a diagnosis.
    closer: Option<CloserLook>,
    lost: Option<(Gap, Instant)>,
    ecc_before: Option<u64>,
    pub faults: Vec<Fault>,
}

#[derive(Default)]
struct Questions {
    utilization: Asked,
    power: Asked,
    clock_events: Asked,
    power_limit: Asked,
    sm_clock: Asked,
    max_sm_clock: Asked,
    temperature: Asked,
    ecc_corrected: Asked,
    ecc_uncorrected: Asked,
    pcie: Asked,
    throughput: Asked,
    processes: Asked,
}

/// The newest answers.
struct Values {
    utilization: Measured<()>,
    memory_controller: Measured<()>,
    power: Measured<()>,
    clock_events: Measured<()>,
    power_limit: Measured<f64>,
    sm_clock: Measured<f64>,
    max_sm_clock: Measured<f64>,
    temperature: Measured<f64>,
    ecc_corrected: Measured<u64>,
    ecc_uncorrected: Measured<u64>,
    pcie: Measured<Pcie>,
    processes: Measured<Vec<GpuProcess>>,
}

impl Device {
    pub fn new(nvml: &Nvml, index: u32, now: Instant) -> Answer<Device> {
        let handle = nvml.device(index)?;
        let uuid: Option<Arc<str>> = nvml.uuid(handle).ok().map(Arc::from);
        let label: Arc<str> = index.to_string().into();
        let mig = nvml.is_divided(handle).unwrap_or(false);
        let parts = if mig { nvml.instances(handle) } else { Vec::new() };
        let several = parts.len() > 1;
        let instances = match mig {
            false => vec![Instance::new(handle, label.clone(), uuid.clone())],
            true => (0..)
                .zip(&parts)
                .map(|(n, part)| {
                    let label = if several { format!("{index}_mig_{n}").into() } else { label.clone() };
                    Instance::new(*part, label, nvml.uuid(*part).ok().map(Arc::from))
                })
                .collect(),
        };
        Ok(Device {
            handle,
            name: nvml.name(handle).unwrap_or_default().into(),
            minor: nvml.minor(handle).ok(),
            mig,
            instances,
            origins: Origins::new(uuid.as_deref(), mig),
            questions: Questions::default(),
            histories: Default::default(),
            slow_due: now,
            // Not all at once.
            throughput_due: now + SLOW_EVERY * index,
            pcie_before: None,
            round: Since::default(),
            since: Since::default(),
            values: Values::pending(),
            closer: None,
            lost: None,
            ecc_before: None,
            faults: Vec::new(),
            label,
            uuid,
        })
    }

    pub fn look_closer(&mut self) {
        self.closer = Some(CloserLook::default());
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Asks everything that is due.
    pub fn round(&mut self, nvml: &Nvml, now: Instant) -> Health {
        let mut health = Health::default();
        self.round = Since::default();
        if self.lost.as_ref().is_some_and(|(_, again)| now < *again) {
            return health;
        }
        let mut round = Since::default();
        self.busy(nvml, now, &mut round, &mut health);
        if let Some(closer) = &mut self.closer {
            closer.rounds += 1;
        }
        if now >= self.slow_due {
            self.slow_due = now + SLOW_EVERY;
            self.slow(nvml, now, &mut health);
        }
        self.round = round;
        self.see_whether_lost(&health, now);
        health
    }

    /// Adds the last round to those before it. `anew`: a tick has taken these.
    pub fn settle(&mut self, anew: bool) {
        match anew {
            true => self.since = self.round,
            false => self.since.join(&self.round),
        }
    }

    fn see_whether_lost(&mut self, health: &Health, now: Instant) {
        match health.lost {
            None => self.lost = None,
            Some(refused) => {
                let gap = refused.gap();
                if self.lost.is_none() {
                    self.fault("gpu_lost", &format!("GPU {} stopped: {refused}", self.label));
                }
                self.lost = Some((gap, now + LOST_PAUSE));
            }
        }
    }

    fn fault(&mut self, kind: &'static str, detail: &str) {
        let (label, uuid) = (Some(self.label.clone()), self.uuid.clone());
        self.faults.push(Fault { kind, label, uuid, detail: detail.into() });
    }

    pub fn xid(&mut self, xid: u64) {
        self.fault("gpu_xid", &format!("GPU {}: the driver reports Xid {xid}", self.label));
    }

    /// Utilisation, power and reasons of clocks.
    fn busy(&mut self, nvml: &Nvml, now: Instant, round: &mut Since, health: &mut Health) {
        let handle = self.handle;
        if self.mig {
            let gap = Gap::absent("under MIG no utilisation exists, neither of the GPU nor of an instance");
            self.values.utilization = Err(gap.clone());
            self.values.memory_controller = Err(gap);
        } else {
            let rates = self.questions.utilization.ask(now, || nvml.utilization(handle));
            health.note(&rates);
            let kept = self.histories[0].new_values(nvml, (handle, nvml::UTILIZATION_SAMPLES), now);
            let kept: Vec<f64> = kept.into_iter().filter(|p| *p <= 100).map(f64::from).collect();
            if let Ok((gpu, memory)) = rates.value {
                round.memory_controller.add(f64::from(memory));
                if kept.is_empty() {
                    round.utilization.add(f64::from(gpu));
                }
            }
            kept.iter().for_each(|p| round.utilization.add(*p));
            let (newest, controller) = match rates.value {
                Ok(_) => (Ok(()), Ok(())),
                Err(gap) if round.utilization.sum.n > 0 => (Ok(()), Err(gap)),
                Err(gap) => (Err(gap.clone()), Err(gap)),
            };
            (self.values.utilization, self.values.memory_controller) = (newest, controller);
        }
        let power = self.questions.power.ask(now, || nvml.power(handle));
        health.note(&power);
        let kept = self.histories[1].new_values(nvml, (handle, nvml::POWER_SAMPLES), now);
        if let (Ok(milliwatts), true) = (&power.value, kept.is_empty()) {
            round.power.add(f64::from(*milliwatts) / 1000.0);
        }
        // A history without a present value is none of this moment.
        if power.value.is_ok() {
            kept.iter().for_each(|mw| round.power.add(f64::from(*mw) / 1000.0));
        }
        self.values.power = power.value.map(|_| ());
        let events = self.questions.clock_events.ask(now, || nvml.clock_events(handle));
        health.note(&events);
        if let Ok(bits) = events.value {
            let limit = self.values.power_limit.as_ref().ok().filter(|limit| **limit > 0.0);
            let power = round.power.sum.mean().zip(limit).map(|(watts, limit)| watts / limit * 100.0);
            round.clock_events.add(bits, power);
            round.clock_event_bits |= bits;
        }
        self.values.clock_events = events.value.map(|_| ());
        round.activity.add(round.utilization.sum.mean(), round.power.sum.mean());
    }

    fn slow(&mut self, nvml: &Nvml, now: Instant, health: &mut Health) {
        let handle = self.handle;
        for instance in &mut self.instances {
            instance.read(nvml, now, health);
        }
        let q = &mut self.questions;
        let watts = |milliwatts: u32| f64::from(milliwatts) / 1000.0;
        let v = &mut self.values;
        let mut ask = |question: &mut Asked, call: &dyn Fn() -> Answer<u32>| {
            let outcome = question.ask(now, call);
            health.note(&outcome);
            outcome.value
        };
        v.power_limit = ask(&mut q.power_limit, &|| nvml.power_limit(handle)).map(watts);
        v.sm_clock = ask(&mut q.sm_clock, &|| nvml.sm_clock(handle)).map(f64::from);
        v.max_sm_clock = ask(&mut q.max_sm_clock, &|| nvml.max_sm_clock(handle)).map(f64::from);
        v.temperature = ask(&mut q.temperature, &|| nvml.temperature(handle)).map(f64::from);
        let corrected = q.ecc_corrected.ask(now, || nvml.ecc_errors(handle, false));
        let uncorrected = q.ecc_uncorrected.ask(now, || nvml.ecc_errors(handle, true));
        let processes = q.processes.ask(now, || nvml.processes(handle));
        health.note(&corrected);
        health.note(&uncorrected);
        health.note(&processes);
        (v.ecc_corrected, v.ecc_uncorrected) = (corrected.value, uncorrected.value);
        v.processes = processes.value;
        self.pcie(nvml, now, health);
        if let Some(closer) = &mut self.closer {
            closer.read(nvml, handle, now);
        }
        self.see_ecc();
    }

    fn see_ecc(&mut self) {
        let Ok(errors) = self.values.ecc_uncorrected else { return };
        let before = self.ecc_before.replace(errors);
        if let Some(new) = before.and_then(|before| errors.checked_sub(before)).filter(|new| *new > 0) {
            self.fault(
                "gpu_ecc",
                &format!("GPU {}: {new} memory errors that could not be corrected", self.label),
            );
        }
    }

    /// By counters, over our own interval; else by a short measurement now and then.
    fn pcie(&mut self, nvml: &Nvml, now: Instant, health: &mut Health) {
        let handle = self.handle;
        let counters = self.questions.pcie.ask(now, || nvml.pcie_counters(handle));
        health.note(&counters);
        if let Ok((receive, transmit)) = counters.value {
            let before = self.pcie_before.replace((now, receive, transmit));
            self.values.pcie = before.map_or_else(pending, |(then, r, t)| {
                let seconds = now.duration_since(then).as_secs_f64();
                match (receive.checked_sub(r), transmit.checked_sub(t)) {
                    (Some(r), Some(t)) if seconds > 0.0 => {
                        Ok(Pcie { receive: r as f64 / seconds, transmit: t as f64 / seconds })
                    }
                    _ => Err(Gap::new(Reason::FirstSample, "nvmlDeviceGetFieldValues: counted anew")),
                }
            });
            return;
        }
        self.pcie_before = None;
        if now < self.throughput_due {
            return;
        }
        self.throughput_due = now + THROUGHPUT_EVERY;
        let began = Instant::now();
        let measured = self.questions.throughput.ask(now, || nvml.pcie_throughput(handle));
        health.slept += began.elapsed();
        health.note(&measured);
        self.values.pcie = measured.value.map(|(r, t)| Pcie { receive: r as f64, transmit: t as f64 });
    }

    /// For a tick.
    pub fn gpu(&self) -> Gpu {
        if let Some((gap, _)) = &self.lost {
            let mut gpu = Gpu::missing(self.label.clone(), &self.origins.utilization, gap);
            gpu.memory = self.instances.iter().map(|i| i.missing(gap)).collect();
            return Gpu { uuid: self.uuid.clone(), name: self.name.clone(), mig: self.mig, ..gpu };
        }
        let (o, v, since) = (&self.origins, &self.values, &self.since);
        let utilization = match self.histories[0].works {
            true => &o.utilization_history,
            false => &o.utilization,
        };
        let power = if self.histories[1].works { &o.power_history } else { &o.power };
        let events = match v.clock_events.clone() {
            Ok(()) if since.clock_events.readings > 0 => Ok(since.clock_events),
            Ok(()) => Err(not_yet()),
            Err(gap) => Err(gap),
        };
        let pcie = if self.pcie_before.is_some() { &o.pcie } else { &o.throughput };
        Gpu {
            label: self.label.clone(),
            uuid: self.uuid.clone(),
            name: self.name.clone(),
            minor: self.minor,
            mig: self.mig,
            utilization: raw(since.utilization.spread(&v.utilization), utilization),
            memory_controller: raw(since.memory_controller.spread(&v.memory_controller), &o.utilization),
            memory: self.instances.iter().map(Instance::memory).collect(),
            power: raw(since.power.spread(&v.power), power),
            power_limit: raw(v.power_limit.clone(), &o.power_limit),
            sm_clock: raw(v.sm_clock.clone(), &o.sm_clock),
            max_sm_clock: raw(v.max_sm_clock.clone(), &o.max_sm_clock),
            temperature: raw(v.temperature.clone(), &o.temperature),
            clock_events: raw(events, &o.clock_events),
            pcie: raw(v.pcie.clone(), pcie),
            ecc_corrected: raw(v.ecc_corrected.clone(), &o.ecc),
            ecc_uncorrected: raw(v.ecc_uncorrected.clone(), &o.ecc),
            processes: raw(v.processes.clone(), &o.processes),
            activity: since.activity,
            owner: Owner::default(),
            closer: self.closer.as_ref().map(|closer| {
                closer.told(Some(since.clock_event_bits).filter(|_| since.clock_events.readings > 0))
            }),
        }
    }
}

impl Values {
    fn pending() -> Values {
        Values {
            utilization: pending(),
            memory_controller: pending(),
            power: pending(),
            clock_events: pending(),
            power_limit: pending(),
            sm_clock: pending(),
            max_sm_clock: pending(),
            temperature: pending(),
            ecc_corrected: pending(),
            ecc_uncorrected: pending(),
            pcie: pending(),
            processes: pending(),
        }
    }
}
