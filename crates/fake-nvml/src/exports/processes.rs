//! Whose processes are on a GPU.

use super::*;

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
