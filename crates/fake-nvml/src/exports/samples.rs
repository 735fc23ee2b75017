//! Values that are asked for several at a time.

use super::*;

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
