//! What ran on the GPUs, and when: a file that jobs append to (tests/targets/device.c), mapped shared.
//!
//! For each GPU a header of 64 bytes and a ring of entries of 32 bytes, numbers in the machine's byte order:
//!
//! | offset | header |
//! |---|---|
//! | 0 | u64 entries that were ever begun; entry n lies at n modulo the ring's length |
//! | 8, 16 | u64 bytes copied to the GPU, and from it |
//! | 24 | what the jobs keep for themselves |
//!
//! | offset | entry |
//! |---|---|
//! | 0, 8 | u64 begin and end, ns of `CLOCK_MONOTONIC`; may lie ahead; an end of all ones is not known yet |
//! | 16 | u32 pid |
//! | 20 | u32 power while it runs, mW |
//! | 24 | u16 memory controller, %; u16 0: kernel, 1: copy to the GPU, 2: copy from it |
//! | 28 | u32 KiB that a copy moves |
//!
//! Kernels of one GPU run one after the other, copies beside them; each kind is in the order of its ends.

use std::ffi::OsStr;

use crate::mapped::Mapped;

const HEADER: usize = 64;
const ENTRY: usize = 32;
pub const RING: usize = 1 << 16;
/// How far an entry may lie behind one that ends earlier: copies and kernels have an order each.
const MIXED_NS: u64 = 1_000_000_000;

pub struct Timeline(Mapped);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Kernel,
    ToGpu,
    FromGpu,
}

#[derive(Clone, Copy)]
pub struct Entry {
    begin: u64,
    end: u64,
    pub pid: u32,
    pub power_mw: u32,
    pub memory_controller: u32,
    pub kind: Kind,
    kib: u32,
}

/// A span of `CLOCK_MONOTONIC`, in ns.
#[derive(Clone, Copy)]
pub struct Span {
    pub begin: u64,
    pub end: u64,
}

impl Span {
    pub fn last(ns: u64) -> Span {
        let end = now_ns();
        Span { begin: end.saturating_sub(ns), end }
    }

    fn length(self) -> f64 {
        self.end.saturating_sub(self.begin).max(1) as f64
    }
}

impl Entry {
    /// Which share of the span it ran.
    fn share(&self, span: Span) -> f64 {
        let common = self.end.min(span.end).saturating_sub(self.begin.max(span.begin));
        common as f64 / span.length()
    }
}

impl Timeline {
    pub fn open(path: &OsStr) -> Timeline {
        Timeline(Mapped::open(path))
    }

    fn at(gpu: usize) -> usize {
        gpu * (HEADER + RING * ENTRY)
    }

    fn count(&self, gpu: usize) -> u64 {
        self.0.u64(Self::at(gpu)).unwrap_or(0)
    }

    fn entry(&self, gpu: usize, number: u64) -> Option<Entry> {
        let at = Self::at(gpu) + HEADER + (number as usize % RING) * ENTRY;
        let both = self.0.u32(at + 24)?;
        let kind = match both >> 16 {
            0 => Kind::Kernel,
            1 => Kind::ToGpu,
            _ => Kind::FromGpu,
        };
        Some(Entry {
            begin: self.0.u64(at)?,
            end: self.0.u64(at + 8)?,
            pid: self.0.u32(at + 16)?,
            power_mw: self.0.u32(at + 20)?,
            memory_controller: both & 0xffff,
            kind,
            kib: self.0.u32(at + 28)?,
        })
    }

    /// Each entry that ran in the span, with the share of the span that it ran.
    fn within(&self, gpu: usize, span: Span) -> impl Iterator<Item = (Entry, f64)> {
        let count = self.count(gpu);
        let oldest = count.saturating_sub(RING as u64 - 1);
        (oldest..count)
            .rev()
            .map_while(move |number| self.entry(gpu, number))
            .take_while(move |entry| entry.end.saturating_add(MIXED_NS) >= span.begin)
            .map(move |entry| (entry, entry.share(span)))
            .filter(|(_, share)| *share > 0.0)
    }

    fn kernels(&self, gpu: usize, span: Span) -> impl Iterator<Item = (Entry, f64)> {
        self.within(gpu, span).filter(|(entry, _)| entry.kind == Kind::Kernel)
    }

    /// Percent of the span in which a kernel ran.
    pub fn utilization(&self, gpu: usize, span: Span) -> u32 {
        percent(self.kernels(gpu, span).map(|(_, share)| share).sum())
    }

    pub fn memory_controller(&self, gpu: usize, span: Span) -> u32 {
        percent(
            self.kernels(gpu, span).map(|(e, share)| share * f64::from(e.memory_controller) / 100.0).sum(),
        )
    }

    /// Mean over the span, where `idle` is drawn when nothing runs.
    pub fn power_mw(&self, gpu: usize, span: Span, idle: u32) -> u32 {
        let more = |(e, share): (Entry, f64)| share * (f64::from(e.power_mw) - f64::from(idle));
        (f64::from(idle) + self.kernels(gpu, span).map(more).sum::<f64>()).max(0.0) as u32
    }

    /// Percent of the span for each process that ran a kernel in it.
    pub fn processes(&self, gpu: usize, span: Span) -> Vec<(u32, u32)> {
        let mut shares = std::collections::BTreeMap::<u32, f64>::new();
        for (entry, share) in self.kernels(gpu, span) {
            *shares.entry(entry.pid).or_default() += share;
        }
        shares.into_iter().map(|(pid, share)| (pid, percent(share))).collect()
    }

    /// Bytes over PCIe so far: received, sent.
    pub fn copied(&self, gpu: usize) -> (u64, u64) {
        let at = Self::at(gpu);
        (self.0.u64(at + 8).unwrap_or(0), self.0.u64(at + 16).unwrap_or(0))
    }

    /// KiB a second over PCIe.
    pub fn throughput(&self, gpu: usize, span: Span, kind: Kind) -> u32 {
        let moved = |(e, share): (Entry, f64)| {
            let whole = e.end.saturating_sub(e.begin).max(1) as f64;
            f64::from(e.kib) * share * span.length() / whole
        };
        let kib: f64 = self.within(gpu, span).filter(|(e, _)| e.kind == kind).map(moved).sum();
        (kib * 1e9 / span.length()) as u32
    }

    /// From when on nothing was overwritten yet.
    pub fn since(&self, gpu: usize) -> u64 {
        match self.count(gpu).checked_sub(RING as u64 - 1) {
            None | Some(0) => 0,
            Some(oldest) => self.entry(gpu, oldest).map_or(0, |e| e.begin),
        }
    }
}

fn percent(share: f64) -> u32 {
    (share * 100.0).round().min(100.0) as u32
}

pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
