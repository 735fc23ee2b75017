//! What a GPU does now: one call, one value.

use super::*;

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
