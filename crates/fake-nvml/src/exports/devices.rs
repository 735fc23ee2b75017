//! Which GPUs and MIG instances there are.

use super::*;

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
