//! The library itself.

use super::*;

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
