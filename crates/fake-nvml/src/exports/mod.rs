//! The symbols. Signatures are those of nvml.h, and so is what each may be given.
#![allow(clippy::missing_safety_doc, reason = "nvml.h says what a caller must keep to")]
#![allow(non_snake_case, reason = "names of nvml.h")]
#![allow(clippy::too_many_arguments, reason = "signatures of nvml.h")]

mod devices;
mod events;
mod processes;
mod readings;
mod samples;
mod system;

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
