//! NVML's functions as we need them (nvml.h). The library is loaded at run time, and a function that it lacks is one
//! more way not to get a value.

use std::ffi::{CStr, c_char};

use nvml_wrapper_sys::bindings::{
    NvmlLib, nvmlDevice_t, nvmlEventData_t, nvmlEventSet_t, nvmlFieldValue_t, nvmlMemory_t, nvmlMemory_v2_t,
    nvmlProcessInfo_t, nvmlProcessUtilizationSample_t, nvmlReturn_t, nvmlSample_t, nvmlUtilization_t,
};
use rankscope_core::gpu::GpuProcess;

use super::refused::{Answer, Refused, Why};

const SUCCESS: nvmlReturn_t = 0;
const INSUFFICIENT_SIZE: nvmlReturn_t = 7;

/// Milliwatts, and percent.
pub const POWER_SAMPLES: u32 = 0;
pub const UTILIZATION_SAMPLES: u32 = 1;
const CLOCK_SM: u32 = 1;
const TEMPERATURE_GPU: u32 = 0;
const PCIE_COUNT_TX_BYTES: u32 = 197;
const PCIE_COUNT_RX_BYTES: u32 = 198;
const VALUE_UNSIGNED_LONG: u32 = 2;
const VALUE_UNSIGNED_LONG_LONG: u32 = 3;
const XID_CRITICAL_ERROR: u64 = 0x8;

macro_rules! call {
    ($nvml:expr, $name:ident($($argument:expr),*)) => {{
        let call = stringify!($name);
        match &$nvml.library.$name {
            // SAFETY: the signature is that of nvml.h. Pointers are to locals of the right type that outlive the call,
            // and handles come from the same library.
            Ok(function) => match unsafe { function($($argument),*) } {
                SUCCESS => Ok(()),
                code => Err(Refused { call, why: Why::Code(code) }),
            },
            Err(_) => Err(Refused { call, why: Why::NoFunction }),
        }
    }};
}

/// One number by one call.
macro_rules! number {
    ($nvml:expr, $name:ident($($argument:expr),*)) => {{
        let mut value = Default::default();
        call!($nvml, $name($($argument,)* &mut value)).and_then(|()| real(value, stringify!($name)))
    }};
}

/// A loaded library. It is never unloaded: threads of its own may be in it.
pub struct Nvml {
    library: std::mem::ManuallyDrop<NvmlLib>,
}

/// A handle of the library; an address in it or not, nobody looks into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(nvmlDevice_t);

impl Nvml {
    /// The first of these names that can be loaded, else why the first can't.
    pub fn load(names: &[String]) -> Result<Nvml, String> {
        let mut first = None;
        for name in names {
            // SAFETY: the library is NVIDIA's, or the one that was named; what it does when loaded is its own.
            match unsafe { NvmlLib::new(name) } {
                Ok(library) => return Ok(Nvml { library: std::mem::ManuallyDrop::new(library) }),
                Err(error) => {
                    first.get_or_insert(error.to_string());
                }
            }
        }
        Err(first.unwrap_or_default())
    }

    pub fn init(&self) -> Answer<()> {
        call!(self, nvmlInit_v2())
    }

    pub fn shutdown(&self) {
        let _ = call!(self, nvmlShutdown());
    }

    pub fn count(&self) -> Answer<u32> {
        number!(self, nvmlDeviceGetCount_v2())
    }

    pub fn device(&self, index: u32) -> Answer<Handle> {
        let mut device = std::ptr::null_mut();
        call!(self, nvmlDeviceGetHandleByIndex_v2(index, &mut device)).map(|()| Handle(device))
    }

    pub fn uuid(&self, device: Handle) -> Answer<String> {
        let mut room = [0; 96];
        call!(self, nvmlDeviceGetUUID(device.0, room.as_mut_ptr(), room.len() as u32))?;
        Ok(text(&room))
    }

    pub fn name(&self, device: Handle) -> Answer<String> {
        let mut room = [0; 96];
        call!(self, nvmlDeviceGetName(device.0, room.as_mut_ptr(), room.len() as u32))?;
        Ok(text(&room))
    }

    pub fn minor(&self, device: Handle) -> Answer<u32> {
        number!(self, nvmlDeviceGetMinorNumber(device.0))
    }

    pub fn is_divided(&self, device: Handle) -> Answer<bool> {
        let (mut now, mut later) = (0, 0);
        call!(self, nvmlDeviceGetMigMode(device.0, &mut now, &mut later)).map(|()| now == 1)
    }

    /// The instances of a GPU that can be seen here.
    pub fn instances(&self, device: Handle) -> Vec<Handle> {
        let most: u32 = number!(self, nvmlDeviceGetMaxMigDeviceCount(device.0)).unwrap_or(0);
        let one = |index| {
            let mut instance = std::ptr::null_mut();
            let found = call!(self, nvmlDeviceGetMigDeviceHandleByIndex(device.0, index, &mut instance));
            found.is_ok().then_some(Handle(instance))
        };
        (0..most.min(64)).filter_map(one).collect()
    }

    /// Percent: of the time in which a kernel ran, in which memory was read or written.
    pub fn utilization(&self, device: Handle) -> Answer<(u32, u32)> {
        let mut rates = nvmlUtilization_t { gpu: 0, memory: 0 };
        call!(self, nvmlDeviceGetUtilizationRates(device.0, &mut rates))?;
        match rates.gpu <= 100 && rates.memory <= 100 {
            true => Ok((rates.gpu, rates.memory)),
            false => Err(Refused { call: "nvmlDeviceGetUtilizationRates", why: Why::NoValue }),
        }
    }

    /// What the driver has kept of a value since `last_seen`, oldest first: microseconds and value.
    pub fn samples(&self, device: Handle, which: u32, last_seen: u64) -> Answer<Vec<(u64, u32)>> {
        let (mut kind, mut count) = (0, 0);
        let none = std::ptr::null_mut();
        call!(self, nvmlDeviceGetSamples(device.0, which, last_seen, &mut kind, &mut count, none))?;
        let count = count.min(4096);
        // SAFETY: plain data, for which all zeros is a valid value.
        let mut samples: Vec<nvmlSample_t> = vec![unsafe { std::mem::zeroed() }; count as usize];
        let mut given = count;
        let at = samples.as_mut_ptr();
        call!(self, nvmlDeviceGetSamples(device.0, which, last_seen, &mut kind, &mut given, at))?;
        samples.truncate(given.min(count) as usize);
        // SAFETY: nvml.h: power and utilisation samples are unsigned ints.
        Ok(samples.iter().map(|s| (s.timeStamp, unsafe { s.sampleValue.uiVal })).collect())
    }

    /// Total, reserved and used.
    pub fn memory_v2(&self, device: Handle) -> Answer<[u64; 3]> {
        let version = size_of::<nvmlMemory_v2_t>() as u32 | 2 << 24;
        let mut memory = nvmlMemory_v2_t { version, total: 0, reserved: 0, free: 0, used: 0 };
        call!(self, nvmlDeviceGetMemoryInfo_v2(device.0, &mut memory))?;
        sane([memory.total, memory.reserved, memory.used], "nvmlDeviceGetMemoryInfo_v2")
    }

    /// Total and used, the reserved part included.
    pub fn memory(&self, device: Handle) -> Answer<[u64; 2]> {
        let mut memory = nvmlMemory_t { total: 0, free: 0, used: 0 };
        call!(self, nvmlDeviceGetMemoryInfo(device.0, &mut memory))?;
        sane([memory.total, memory.used], "nvmlDeviceGetMemoryInfo")
    }

    /// Milliwatts.
    pub fn power(&self, device: Handle) -> Answer<u32> {
        number!(self, nvmlDeviceGetPowerUsage(device.0))
    }

    /// Milliwatts.
    pub fn power_limit(&self, device: Handle) -> Answer<u32> {
        number!(self, nvmlDeviceGetEnforcedPowerLimit(device.0))
    }

    /// Megahertz.
    pub fn sm_clock(&self, device: Handle) -> Answer<u32> {
        number!(self, nvmlDeviceGetClockInfo(device.0, CLOCK_SM))
    }

    pub fn max_sm_clock(&self, device: Handle) -> Answer<u32> {
        number!(self, nvmlDeviceGetMaxClockInfo(device.0, CLOCK_SM))
    }

    /// °C.
    pub fn temperature(&self, device: Handle) -> Answer<u32> {
        number!(self, nvmlDeviceGetTemperature(device.0, TEMPERATURE_GPU))
    }

    /// Bits. Before driver 535 the function had another name.
    pub fn clock_events(&self, device: Handle) -> Answer<u64> {
        match number!(self, nvmlDeviceGetCurrentClocksEventReasons(device.0)) {
            Err(Refused { why: Why::NoFunction | Why::Code(13), .. }) => {
                number!(self, nvmlDeviceGetCurrentClocksThrottleReasons(device.0))
            }
            answer => answer,
        }
    }

    /// Errors since the driver was loaded.
    pub fn ecc_errors(&self, device: Handle, uncorrected: bool) -> Answer<u64> {
        const VOLATILE: u32 = 0;
        number!(self, nvmlDeviceGetTotalEccErrors(device.0, u32::from(uncorrected), VOLATILE))
    }

    /// Bytes received and sent. Only counters of 64 bits count: one of 32 wraps several times a second.
    pub fn pcie_counters(&self, device: Handle) -> Answer<(u64, u64)> {
        let refused = |why| Refused { call: "nvmlDeviceGetFieldValues", why };
        let mut fields = [PCIE_COUNT_RX_BYTES, PCIE_COUNT_TX_BYTES].map(|id| {
            // SAFETY: plain data, for which all zeros is a valid value.
            let zeros: nvmlFieldValue_t = unsafe { std::mem::zeroed() };
            nvmlFieldValue_t { fieldId: id, ..zeros }
        });
        call!(self, nvmlDeviceGetFieldValues(device.0, fields.len() as i32, fields.as_mut_ptr()))?;
        let value = |field: &nvmlFieldValue_t| match (field.nvmlReturn, field.valueType) {
            // SAFETY: the type says which field of the union it is; both have 64 bits here.
            (SUCCESS, VALUE_UNSIGNED_LONG | VALUE_UNSIGNED_LONG_LONG) => Ok(unsafe { field.value.ullVal }),
            (SUCCESS, _) => Err(refused(Why::NoValue)),
            (code, _) => Err(refused(Why::Code(code))),
        };
        let [receive, transmit] = &fields;
        Ok((value(receive)?, value(transmit)?))
    }

    /// Bytes per second received and sent, each over 20 ms, for which the call waits.
    pub fn pcie_throughput(&self, device: Handle) -> Answer<(u64, u64)> {
        let receive: u32 = number!(self, nvmlDeviceGetPcieThroughput(device.0, 1))?;
        let transmit: u32 = number!(self, nvmlDeviceGetPcieThroughput(device.0, 0))?;
        Ok((u64::from(receive) * 1024, u64::from(transmit) * 1024))
    }

    /// Generation and width of the link: as it is now (it is slower while nothing is asked of it), and at its best.
    pub fn pcie_link(&self, device: Handle) -> Answer<[(u32, u32); 2]> {
        let now: u32 = number!(self, nvmlDeviceGetCurrPcieLinkGeneration(device.0))?;
        let width: u32 = number!(self, nvmlDeviceGetCurrPcieLinkWidth(device.0))?;
        let best: u32 = number!(self, nvmlDeviceGetMaxPcieLinkGeneration(device.0))?;
        let widest: u32 = number!(self, nvmlDeviceGetMaxPcieLinkWidth(device.0))?;
        Ok([(now, width), (best, widest)])
    }

    /// Pid, the driver's time, and percent, of what is newer than `last_seen`.
    pub fn process_utilization(&self, device: Handle, last_seen: u64) -> Answer<Vec<(u32, u64, u32)>> {
        let mut count = 0;
        let none = std::ptr::null_mut();
        match call!(self, nvmlDeviceGetProcessUtilization(device.0, none, &mut count, last_seen)) {
            Err(refused) if refused.code() != Some(INSUFFICIENT_SIZE) => return Err(refused),
            _ => {}
        }
        let count = count.min(4096);
        // SAFETY: plain data, for which all zeros is a valid value.
        let zeros: nvmlProcessUtilizationSample_t = unsafe { std::mem::zeroed() };
        let mut entries = vec![zeros; count as usize];
        let mut given = count;
        call!(self, nvmlDeviceGetProcessUtilization(device.0, entries.as_mut_ptr(), &mut given, last_seen))?;
        entries.truncate(given.min(count) as usize);
        let sane = entries.iter().filter(|e| e.timeStamp > last_seen && e.smUtil <= 100 && e.pid != 0);
        Ok(sane.map(|e| (e.pid, e.timeStamp, e.smUtil)).collect())
    }

    /// Pids that no process has are left out.
    pub fn processes(&self, device: Handle) -> Answer<Vec<GpuProcess>> {
        let mut all = self.compute_processes(device)?;
        // Where graphics is not offered there is none.
        all.extend(self.graphics_processes(device).unwrap_or_default());
        all.retain(|p| p.pid != 0 && p.pid != u32::MAX);
        Ok(all)
    }

    fn compute_processes(&self, device: Handle) -> Answer<Vec<GpuProcess>> {
        let newest =
            list(|n, at| call!(self, nvmlDeviceGetComputeRunningProcesses_v3(device.0, n, at)), false);
        match newest {
            Err(Refused { why: Why::NoFunction | Why::Code(13), .. }) => {
                list(|n, at| call!(self, nvmlDeviceGetComputeRunningProcesses_v2(device.0, n, at)), false)
            }
            answer => answer,
        }
    }

    fn graphics_processes(&self, device: Handle) -> Answer<Vec<GpuProcess>> {
        list(|n, at| call!(self, nvmlDeviceGetGraphicsRunningProcesses_v3(device.0, n, at)), true)
    }

    /// A set that gets the Xid errors of these GPUs.
    pub fn xid_events(&self, devices: &[Handle]) -> Answer<XidEvents> {
        let mut set: nvmlEventSet_t = std::ptr::null_mut();
        call!(self, nvmlEventSetCreate(&mut set))?;
        for device in devices {
            // One that has no events has none.
            let _ = call!(self, nvmlDeviceRegisterEvents(device.0, XID_CRITICAL_ERROR, set));
        }
        Ok(XidEvents(set))
    }

    /// The next error that waits: of which GPU, and its number.
    pub fn next_xid(&self, events: &XidEvents) -> Answer<(Handle, u64)> {
        // SAFETY: plain data, for which all zeros is a valid value.
        let mut data: nvmlEventData_t = unsafe { std::mem::zeroed() };
        call!(self, nvmlEventSetWait_v2(events.0, &mut data, 0))?;
        Ok((Handle(data.device), data.eventData))
    }

    pub fn free(&self, events: XidEvents) {
        let _ = call!(self, nvmlEventSetFree(events.0));
    }
}

pub struct XidEvents(nvmlEventSet_t);

/// With the number first: the room that is needed is only known when it was too little.
fn list(
    call: impl Fn(*mut u32, *mut nvmlProcessInfo_t) -> Answer<()>,
    graphics: bool,
) -> Answer<Vec<GpuProcess>> {
    let mut room = 32u32;
    for _ in 0..3 {
        // SAFETY: plain data, for which all zeros is a valid value.
        let mut infos: Vec<nvmlProcessInfo_t> = vec![unsafe { std::mem::zeroed() }; room as usize];
        let mut count = room;
        match call(&mut count, infos.as_mut_ptr()) {
            Ok(()) => {
                infos.truncate(count.min(room) as usize);
                let known = |memory: u64| Some(memory).filter(|m| *m != u64::MAX);
                let one = |i: &nvmlProcessInfo_t| GpuProcess {
                    pid: i.pid,
                    graphics,
                    memory: known(i.usedGpuMemory),
                };
                return Ok(infos.iter().map(one).collect());
            }
            Err(refused) if refused.code() == Some(INSUFFICIENT_SIZE) => room = count.min(4096) + 16,
            Err(refused) => return Err(refused),
        }
    }
    Err(Refused { call: "nvmlDeviceGetComputeRunningProcesses_v3", why: Why::Code(INSUFFICIENT_SIZE) })
}

/// A number whose bits are not all ones.
trait Bits: Copy + PartialEq {
    const ONES: Self;
}

impl Bits for u32 {
    const ONES: u32 = u32::MAX;
}

impl Bits for u64 {
    const ONES: u64 = u64::MAX;
}

fn real<T: Bits>(value: T, call: &'static str) -> Answer<T> {
    if value == T::ONES { Err(Refused { call, why: Why::NoValue }) } else { Ok(value) }
}

/// Total first. A total of 0 is no size, and no part is larger than the total.
fn sane<const N: usize>(memory: [u64; N], call: &'static str) -> Answer<[u64; N]> {
    let total = memory[0];
    let sound = total > 0 && total != u64::MAX && memory.iter().all(|part| *part <= total);
    if sound { Ok(memory) } else { Err(Refused { call, why: Why::NoValue }) }
}

fn text(room: &[c_char]) -> String {
    let bytes: Vec<u8> = room.iter().map(|c| *c as u8).collect();
    CStr::from_bytes_until_nul(&bytes).map(|t| t.to_string_lossy().into_owned()).unwrap_or_default()
}
