//! XIDs.

use super::*;

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
