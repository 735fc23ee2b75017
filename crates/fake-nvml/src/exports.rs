//! The symbols. Signatures are those of nvml.h, and so is what each may be given.
#![allow(clippy::missing_safety_doc, reason = "nvml.h says what a caller must keep to")]
#![allow(non_snake_case, reason = "names of nvml.h")]
#![allow(clippy::too_many_arguments, reason = "signatures of nvml.h")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use nvml_wrapper_sys::bindings::*;

use crate::Library;
use crate::device::{Handle, Sampled, since_loaded};
use crate::fault::{Course, course};
use crate::scenario::Process;

type R = nvmlReturn_t;

const OK: R = 0;
const UNINITIALIZED: R = 1;
const INVALID: R = 2;
const NOT_SUPPORTED: R = 3;
const NOT_FOUND: R = 6;
const TOO_SMALL: R = 7;
const TIMEOUT: R = 10;
const WRONG_VERSION: R = 25;

static READY: AtomicBool = AtomicBool::new(false);

/// Takes the call's course; `put` is what it does when it goes well.
fn call(name: &str, put: impl FnOnce() -> R) -> R {
    match course(name, None) {
        Course::Fails(code) => code,
        _ if !READY.load(Ordering::SeqCst) => UNINITIALIZED,
        _ => put(),
    }
}

/// The same on a device.
fn on(name: &str, device: nvmlDevice_t, put: impl FnOnce(Handle, bool) -> R) -> R {
    if !READY.load(Ordering::SeqCst) {
        return UNINITIALIZED;
    }
    let Some(handle) = Handle::unpack(device) else { return INVALID };
    match course(name, Some(handle)) {
        Course::Fails(code) => code,
        Course::AllOnes => put(handle, true),
        Course::Well => put(handle, false),
    }
}

/// Writes one value.
fn give<T>(to: *mut T, value: T) -> R {
    if to.is_null() {
        return INVALID;
    }
    // SAFETY: not null; nvml.h asks the caller for a valid place.
    unsafe { to.write(value) };
    OK
}

fn give_number(name: &str, device: nvmlDevice_t, to: *mut c_uint, value: impl Fn(Handle) -> u32) -> R {
    on(name, device, |h, ones| give(to, if ones { u32::MAX } else { value(h) }))
}

fn give_text(to: *mut c_char, room: c_uint, text: &str) -> R {
    let bytes = text.as_bytes();
    if to.is_null() || bytes.len() >= room as usize {
        return TOO_SMALL;
    }
    for (at, byte) in bytes.iter().chain([&0]).enumerate() {
        // SAFETY: less than the room that the caller says there is.
        unsafe { to.add(at).write(*byte as c_char) };
    }
    OK
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> R {
    match course("nvmlInit_v2", None) {
        Course::Fails(code) => code,
        _ => {
            since_loaded();
            READY.store(true, Ordering::SeqCst);
            OK
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> R {
    nvmlInit_v2()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> R {
    call("nvmlShutdown", || {
        READY.store(false, Ordering::SeqCst);
        OK
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(code: R) -> *const c_char {
    let text: &CStr = match code {
        OK => c"Success",
        UNINITIALIZED => c"Uninitialized",
        INVALID => c"Invalid Argument",
        NOT_SUPPORTED => c"Not Supported",
        4 => c"Insufficient Permissions",
        9 => c"Driver Not Loaded",
        15 => c"GPU is lost",
        18 => c"Driver/library version mismatch",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, room: c_uint) -> R {
    call("nvmlSystemGetDriverVersion", || give_text(to, room, &Library::get().scenario.driver))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlSystemGetNVMLVersion(to: *mut c_char, room: c_uint) -> R {
    call("nvmlSystemGetNVMLVersion", || {
        give_text(to, room, &format!("12.{}", Library::get().scenario.driver))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> R {
    call("nvmlDeviceGetCount_v2", || give(to, Library::get().scenario.gpu.len() as c_uint))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut nvmlDevice_t) -> R {
    let handle = Handle { gpu: index as usize, mig: None };
    if handle.gpu >= Library::get().scenario.gpu.len() {
        return INVALID;
    }
    on("nvmlDeviceGetHandleByIndex_v2", handle.pack(), |h, _| give(to, h.pack()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, to: *mut nvmlDevice_t) -> R {
    call("nvmlDeviceGetHandleByUUID", || {
        // SAFETY: nvml.h asks for a text that ends with NUL.
        let asked = unsafe { CStr::from_ptr(uuid) }.to_string_lossy();
        let gpus = Library::get().scenario.gpu.iter().enumerate();
        let mut all = gpus.flat_map(|(gpu, g)| {
            let instances = (0..g.mig.len()).map(Some);
            std::iter::once(None).chain(instances).map(move |mig| Handle { gpu, mig })
        });
        all.find(|h| h.uuid() == asked).map_or(NOT_FOUND, |h| give(to, h.pack()))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetIndex(device: nvmlDevice_t, to: *mut c_uint) -> R {
    on("nvmlDeviceGetIndex", device, |h, _| give(to, h.gpu as c_uint))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMinorNumber(device: nvmlDevice_t, to: *mut c_uint) -> R {
    give_number("nvmlDeviceGetMinorNumber", device, to, |h| h.scenario().minor)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetName(device: nvmlDevice_t, to: *mut c_char, room: c_uint) -> R {
    on("nvmlDeviceGetName", device, |h, _| give_text(to, room, &h.scenario().name))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetUUID(device: nvmlDevice_t, to: *mut c_char, room: c_uint) -> R {
    on("nvmlDeviceGetUUID", device, |h, _| give_text(to, room, h.uuid()))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetUtilizationRates(device: nvmlDevice_t, to: *mut nvmlUtilization_t) -> R {
    on("nvmlDeviceGetUtilizationRates", device, |h, ones| {
        let of = |value| if ones { u32::MAX } else { value };
        give(to, nvmlUtilization_t { gpu: of(h.utilization()), memory: of(h.memory_controller()) })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, to: *mut nvmlMemory_t) -> R {
    on("nvmlDeviceGetMemoryInfo", device, |h, ones| {
        let m = h.memory();
        let used = m.used + m.reserved;
        let of = |value| if ones { u64::MAX } else { value };
        give(to, nvmlMemory_t { total: of(m.total), free: of(m.total.saturating_sub(used)), used: of(used) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, to: *mut nvmlMemory_v2_t) -> R {
    on("nvmlDeviceGetMemoryInfo_v2", device, |h, ones| {
        let version = size_of::<nvmlMemory_v2_t>() as u32 | 2 << 24;
        // SAFETY: nvml.h asks the caller for a valid struct with its version filled in.
        if to.is_null() || unsafe { (*to).version } != version {
            return WRONG_VERSION;
        }
        let m = h.memory();
        let of = |value| if ones { u64::MAX } else { value };
        let free = of(m.total.saturating_sub(m.used + m.reserved));
        let (total, reserved, used) = (of(m.total), of(m.reserved), of(m.used));
        give(to, nvmlMemory_v2_t { version, total, reserved, free, used })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, to: *mut c_uint) -> R {
    give_number("nvmlDeviceGetPowerUsage", device, to, Handle::power_mw)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetEnforcedPowerLimit(device: nvmlDevice_t, to: *mut c_uint) -> R {
    give_number("nvmlDeviceGetEnforcedPowerLimit", device, to, |h| h.scenario().power_limit_mw)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetClockInfo(device: nvmlDevice_t, _which: c_uint, to: *mut c_uint) -> R {
    give_number("nvmlDeviceGetClockInfo", device, to, Handle::sm_clock)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxClockInfo(device: nvmlDevice_t, _which: c_uint, to: *mut c_uint) -> R {
    give_number("nvmlDeviceGetMaxClockInfo", device, to, |h| h.scenario().max_sm_clock)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetTemperature(device: nvmlDevice_t, _sensor: c_uint, to: *mut c_uint) -> R {
    give_number("nvmlDeviceGetTemperature", device, to, Handle::temperature)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCurrentClocksEventReasons(device: nvmlDevice_t, to: *mut c_ulonglong) -> R {
    on("nvmlDeviceGetCurrentClocksEventReasons", device, |h, ones| {
        give(to, if ones { u64::MAX } else { h.clock_reasons() })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(device: nvmlDevice_t, to: *mut c_ulonglong) -> R {
    on("nvmlDeviceGetCurrentClocksThrottleReasons", device, |h, ones| {
        give(to, if ones { u64::MAX } else { h.clock_reasons() })
    })
}

/// 0: sent, 1: received; KB/s over 20 ms, which the call waits for.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPcieThroughput(device: nvmlDevice_t, which: c_uint, to: *mut c_uint) -> R {
    std::thread::sleep(std::time::Duration::from_millis(20));
    give_number("nvmlDeviceGetPcieThroughput", device, to, |h| h.pcie_throughput(which != 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetTotalEccErrors(
    device: nvmlDevice_t,
    uncorrected: c_uint,
    _aggregate: c_uint,
    to: *mut c_ulonglong,
) -> R {
    on("nvmlDeviceGetTotalEccErrors", device, |h, ones| match (ones, uncorrected) {
        (true, _) => give(to, u64::MAX),
        (false, 1) => give(to, h.ecc_uncorrected()),
        (false, _) => give(to, h.scenario().ecc_corrected),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(
    device: nvmlDevice_t,
    count: c_int,
    values: *mut nvmlFieldValue_t,
) -> R {
    on("nvmlDeviceGetFieldValues", device, |h, _| {
        let (receive, transmit) = h.pcie();
        let narrow = h.scenario().pcie_narrow;
        for at in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: nvml.h asks for an array of `count` structs.
            let value = unsafe { &mut *values.add(at) };
            let bytes = match value.fieldId {
                197 => transmit,
                198 => receive,
                _ => {
                    value.nvmlReturn = NOT_SUPPORTED;
                    continue;
                }
            };
            value.nvmlReturn = OK;
            value.timestamp = since_loaded().as_micros() as i64;
            (value.valueType, value.value) = match narrow {
                true => (1, nvmlValue_t { uiVal: bytes as u32 }),
                false => (3, nvmlValue_t { ullVal: bytes }),
            };
        }
        OK
    })
}

/// 0: power in mW, 1: utilisation; six a second, since the library was loaded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSamples(
    device: nvmlDevice_t,
    which: nvmlSamplingType_t,
    last_seen: c_ulonglong,
    value_type: *mut nvmlValueType_t,
    count: *mut c_uint,
    samples: *mut nvmlSample_t,
) -> R {
    on("nvmlDeviceGetSamples", device, |h, _| {
        let which = match which {
            0 => Sampled::Power,
            1 => Sampled::Utilization,
            _ => return NOT_SUPPORTED,
        };
        const APART_US: u64 = 1_000_000 / 6;
        let newest = 1 + since_loaded().as_micros() as u64 / APART_US;
        if h.sample(which, newest, APART_US).is_none() {
            return NOT_SUPPORTED;
        }
        let oldest = newest.saturating_sub(120).max(last_seen / APART_US) + 1;
        let room = 120;
        // SAFETY: nvml.h asks for a valid count.
        let given = unsafe { &mut *count };
        if samples.is_null() {
            *given = room;
            return OK;
        }
        let mut put = 0;
        for at in (oldest..=newest).take(*given as usize) {
            let Some(value) = h.sample(which, at, APART_US) else { continue };
            let value = nvmlValue_t { uiVal: value };
            // SAFETY: less than the room that the caller says there is.
            unsafe {
                samples
                    .add(put as usize)
                    .write(nvmlSample_t { timeStamp: at * APART_US, sampleValue: value });
            }
            put += 1;
        }
        if put == 0 {
            return NOT_FOUND;
        }
        *given = put;
        give(value_type, 1)
    })
}

/// The documented way: with too little room the number is told.
unsafe fn give_processes(processes: &[Process], count: *mut c_uint, infos: *mut nvmlProcessInfo_t) -> R {
    // SAFETY: nvml.h asks for a valid count.
    let room = unsafe { &mut *count };
    let enough = *room as usize >= processes.len();
    *room = processes.len() as c_uint;
    if !enough {
        return TOO_SMALL;
    }
    for (at, process) in processes.iter().enumerate() {
        let info = nvmlProcessInfo_t {
            pid: process.pid,
            usedGpuMemory: process.memory,
            gpuInstanceId: u32::MAX,
            computeInstanceId: u32::MAX,
        };
        // SAFETY: less than the room that the caller says there is.
        unsafe { infos.add(at).write(info) };
    }
    OK
}

macro_rules! process_lists {
    ($($name:ident: $graphics:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            device: nvmlDevice_t,
            count: *mut c_uint,
            infos: *mut nvmlProcessInfo_t,
        ) -> R {
            on(stringify!($name), device, |h, _| {
                // SAFETY: handed on from our caller.
                unsafe { give_processes(&h.processes($graphics), count, infos) }
            })
        }
    )*};
}

process_lists! {
    nvmlDeviceGetComputeRunningProcesses_v3: false;
    nvmlDeviceGetComputeRunningProcesses_v2: false;
    nvmlDeviceGetGraphicsRunningProcesses_v3: true;
    nvmlDeviceGetGraphicsRunningProcesses_v2: true;
}

fn give_link(name: &str, device: nvmlDevice_t, to: *mut c_uint, (when, which): (usize, usize)) -> R {
    on(name, device, |h, ones| match h.scenario().pcie_link {
        Some(link) => give(to, if ones { u32::MAX } else { link[when][which] }),
        None => NOT_SUPPORTED,
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCurrPcieLinkGeneration(device: nvmlDevice_t, to: *mut c_uint) -> R {
    give_link("nvmlDeviceGetCurrPcieLinkGeneration", device, to, (0, 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCurrPcieLinkWidth(device: nvmlDevice_t, to: *mut c_uint) -> R {
    give_link("nvmlDeviceGetCurrPcieLinkWidth", device, to, (0, 1))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxPcieLinkGeneration(device: nvmlDevice_t, to: *mut c_uint) -> R {
    give_link("nvmlDeviceGetMaxPcieLinkGeneration", device, to, (1, 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxPcieLinkWidth(device: nvmlDevice_t, to: *mut c_uint) -> R {
    give_link("nvmlDeviceGetMaxPcieLinkWidth", device, to, (1, 1))
}

/// A GPU that one process computes on is as busy as it keeps it; with several the driver is taken not to know.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    device: nvmlDevice_t,
    entries: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen: c_ulonglong,
) -> R {
    on("nvmlDeviceGetProcessUtilization", device, |h, _| {
        let Some(shares) = h.process_utilization() else { return NOT_SUPPORTED };
        let time = since_loaded().as_micros() as u64 + 1;
        if shares.is_empty() || time <= last_seen {
            return NOT_FOUND;
        }
        // SAFETY: nvml.h asks for a valid count.
        let room = unsafe { &mut *count };
        let enough = !entries.is_null() && *room as usize >= shares.len();
        *room = shares.len() as c_uint;
        if !enough {
            return TOO_SMALL;
        }
        for (at, (pid, utilization)) in shares.into_iter().enumerate() {
            let entry = nvmlProcessUtilizationSample_t {
                pid,
                timeStamp: time,
                smUtil: utilization,
                memUtil: h.memory_controller(),
                encUtil: 0,
                decUtil: 0,
            };
            // SAFETY: less than the room that the caller says there is.
            unsafe { entries.add(at).write(entry) };
        }
        OK
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMigMode(device: nvmlDevice_t, now: *mut c_uint, later: *mut c_uint) -> R {
    on("nvmlDeviceGetMigMode", device, |h, _| {
        let mode = c_uint::from(!h.scenario().mig.is_empty());
        give(now, mode);
        give(later, mode)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, to: *mut c_uint) -> R {
    give_number("nvmlDeviceGetMaxMigDeviceCount", device, to, |_| 7)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: nvmlDevice_t,
    index: c_uint,
    to: *mut nvmlDevice_t,
) -> R {
    on("nvmlDeviceGetMigDeviceHandleByIndex", device, |h, _| match h.scenario().mig.get(index as usize) {
        Some(_) => give(to, Handle { gpu: h.gpu, mig: Some(index as usize) }.pack()),
        None => NOT_FOUND,
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceIsMigDeviceHandle(device: nvmlDevice_t, to: *mut c_uint) -> R {
    on("nvmlDeviceIsMigDeviceHandle", device, |h, _| give(to, c_uint::from(h.mig.is_some())))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetGpuInstanceId(device: nvmlDevice_t, to: *mut c_uint) -> R {
    on("nvmlDeviceGetGpuInstanceId", device, |h, _| match h.instance() {
        Some(mig) => give(to, mig.gpu_instance),
        None => NOT_SUPPORTED,
    })
}

/// For the test that compares with nvidia-ml-py: 0 for a struct that is not exchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakeSizeOf(name: *const c_char) -> usize {
    // SAFETY: a text that ends with NUL.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"memory" => size_of::<nvmlMemory_t>(),
        b"memory_v2" => size_of::<nvmlMemory_v2_t>(),
        b"utilization" => size_of::<nvmlUtilization_t>(),
        b"process" => size_of::<nvmlProcessInfo_t>(),
        b"sample" => size_of::<nvmlSample_t>(),
        b"field_value" => size_of::<nvmlFieldValue_t>(),
        b"process_utilization" => size_of::<nvmlProcessUtilizationSample_t>(),
        b"event_data" => size_of::<nvmlEventData_t>(),
        _ => 0,
    }
}

static XIDS_SEEN: [AtomicU32; 16] = [const { AtomicU32::new(0) }; 16];

#[unsafe(no_mangle)]
pub extern "C" fn nvmlEventSetCreate(to: *mut nvmlEventSet_t) -> R {
    call("nvmlEventSetCreate", || give(to, std::ptr::without_provenance_mut(8)))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceRegisterEvents(
    device: nvmlDevice_t,
    _which: c_ulonglong,
    _set: nvmlEventSet_t,
) -> R {
    on("nvmlDeviceRegisterEvents", device, |_, _| OK)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlEventSetWait_v2(
    _set: nvmlEventSet_t,
    to: *mut nvmlEventData_t,
    _timeout_ms: c_uint,
) -> R {
    call("nvmlEventSetWait_v2", || {
        let Some(state) = &Library::get().state else { return TIMEOUT };
        for (gpu, seen) in XIDS_SEEN.iter().enumerate() {
            let (count, xid) = state.xids(gpu);
            if count > seen.load(Ordering::SeqCst) {
                seen.fetch_add(1, Ordering::SeqCst);
                let device = Handle { gpu, mig: None }.pack();
                let data = nvmlEventData_t {
                    device,
                    eventType: 8,
                    eventData: xid.into(),
                    gpuInstanceId: u32::MAX,
                    computeInstanceId: u32::MAX,
                };
                return give(to, data);
            }
        }
        TIMEOUT
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlEventSetFree(_set: nvmlEventSet_t) -> R {
    call("nvmlEventSetFree", || OK)
}
