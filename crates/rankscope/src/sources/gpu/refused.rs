//! How a call to NVML is refused (nvml.h, nvmlReturn_t), and what that means for a value.

use std::fmt;

use nvml_wrapper_sys::bindings::nvmlReturn_t;
use rankscope_core::gap::{Gap, Reason};

/// Why a call gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub call: &'static str,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// This library has no such function.
    NoFunction,
    Code(nvmlReturn_t),
    /// All bits of the answer are ones, which nvml.h calls NOT_AVAILABLE, or it is out of its range.
    NoValue,
}

pub type Answer<T> = Result<T, Refused>;

pub const UNINITIALIZED: nvmlReturn_t = 1;
pub const DRIVER_NOT_LOADED: nvmlReturn_t = 9;
pub const GPU_IS_LOST: nvmlReturn_t = 15;
pub const LIB_RM_VERSION_MISMATCH: nvmlReturn_t = 18;
pub const UNKNOWN: nvmlReturn_t = 999;

impl Refused {
    pub fn code(&self) -> Option<nvmlReturn_t> {
        match self.why {
            Why::Code(code) => Some(code),
            Why::NoFunction | Why::NoValue => None,
        }
    }

    pub fn gap(&self) -> Gap {
        let reason = match self.why {
            Why::NoFunction | Why::NoValue | Why::Code(3 | 6 | 13) => Reason::Absent,
            Why::Code(4) => Reason::Denied,
            Why::Code(10) => Reason::Late,
            Why::Code(_) => Reason::Broken,
        };
        Gap::new(reason, self.to_string())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why {
            Why::NoFunction => write!(f, "{}: this driver has no such function", self.call),
            Why::NoValue => write!(f, "{}: not available", self.call),
            Why::Code(code) => write!(f, "{}: {} ({code})", self.call, words(code)),
        }
    }
}

/// Of nvml.h, nvmlReturn_t.
fn words(code: nvmlReturn_t) -> &'static str {
    match code {
        1 => "uninitialized",
        2 => "invalid argument",
        3 => "not supported",
        4 => "no permission",
        6 => "not found",
        9 => "driver not loaded",
        10 => "timeout",
        12 => "library not found",
        13 => "function not found",
        15 => "GPU is lost",
        16 => "GPU requires a reset",
        17 => "blocked by the operating system",
        18 => "driver/library version mismatch",
        _ => "unknown error",
    }
}
