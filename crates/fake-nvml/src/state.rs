//! The state that a test program changes while the library is loaded: a file, mapped shared.
//!
//! One record of 256 bytes a GPU, numbers in the machine's byte order; all ones: as in the scenario.
//!
//! | offset | what |
//! |---|---|
//! | 0 | u32 utilisation, % |
//! | 4 | u32 memory controller, % |
//! | 8 | u32 power, mW |
//! | 12 | u32 SM clock, MHz |
//! | 16 | u64 memory used, bytes |
//! | 24 | u64 clock event reasons |
//! | 32 | u64 uncorrected ECC errors |
//! | 40 | u32 code that every call on this GPU returns (all ones: none) |
//! | 44 | u32 1: every call on this GPU hangs |
//! | 48 | u32 number of Xid errors so far (all ones: 0), u32 the last one |
//! | 56 | u32 temperature, °C |
//! | 60 | u32 number of processes (all ones: as in the scenario) |
//! | 64 | for each process u32 pid, u32 1: graphics, u64 memory; 12 at most |

use std::ffi::OsStr;

use crate::mapped::Mapped;
use crate::scenario::Process;

const RECORD: usize = 256;
const PROCESSES: usize = 12;

pub struct State(Mapped);

impl State {
    pub fn open(path: &OsStr) -> State {
        State(Mapped::open(path))
    }

    fn u32(&self, gpu: usize, offset: usize) -> Option<u32> {
        self.0.u32(gpu * RECORD + offset).filter(|v| *v != u32::MAX)
    }

    fn u64(&self, gpu: usize, offset: usize) -> Option<u64> {
        self.0.u64(gpu * RECORD + offset).filter(|v| *v != u64::MAX)
    }

    pub fn utilization(&self, gpu: usize) -> Option<u32> {
        self.u32(gpu, 0)
    }

    pub fn memory_controller(&self, gpu: usize) -> Option<u32> {
        self.u32(gpu, 4)
    }

    pub fn power_mw(&self, gpu: usize) -> Option<u32> {
        self.u32(gpu, 8)
    }

    pub fn sm_clock(&self, gpu: usize) -> Option<u32> {
        self.u32(gpu, 12)
    }

    pub fn memory_used(&self, gpu: usize) -> Option<u64> {
        self.u64(gpu, 16)
    }

    pub fn clock_reasons(&self, gpu: usize) -> Option<u64> {
        self.u64(gpu, 24)
    }

    pub fn ecc_uncorrected(&self, gpu: usize) -> Option<u64> {
        self.u64(gpu, 32)
    }

    pub fn code(&self, gpu: usize) -> Option<u32> {
        self.u32(gpu, 40)
    }

    pub fn hangs(&self, gpu: usize) -> bool {
        self.u32(gpu, 44) == Some(1)
    }

    /// How many Xid errors there were, and which was the last.
    pub fn xids(&self, gpu: usize) -> (u32, u32) {
        (self.u32(gpu, 48).unwrap_or(0), self.u32(gpu, 52).unwrap_or(0))
    }

    pub fn temperature(&self, gpu: usize) -> Option<u32> {
        self.u32(gpu, 56)
    }

    pub fn processes(&self, gpu: usize) -> Option<Vec<Process>> {
        let count = self.u32(gpu, 60)? as usize;
        let one = |n: usize| {
            let at = 64 + n * 16;
            Some(Process {
                // A pid of all ones is what some drivers give.
                pid: self.u32(gpu, at).unwrap_or(u32::MAX),
                graphics: self.u32(gpu, at + 4) == Some(1),
                memory: self.u64(gpu, at + 8).unwrap_or(u64::MAX),
            })
        };
        (0..count.min(PROCESSES)).map(one).collect()
    }
}
