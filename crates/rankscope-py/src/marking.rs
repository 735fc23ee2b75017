//! `mark()`: into the memory of whoever records this process, if anybody does.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use rankscope::marks::{Mark, Reader, Ring};

use crate::process;

/// Where marks go. What it points to lives as long as the process.
static RING: AtomicPtr<Ring> = AtomicPtr::new(null_mut());
/// Of our own recorder: one after the other uses it.
static OWN: OnceLock<Arc<Ring>> = OnceLock::new();

/// Of the phase that this process is in: one that is marked at each step begins once.
static PHASE: AtomicU64 = AtomicU64::new(0);

/// What is None stays as it is; a phase ends the one before, and an empty one begins none.
#[pyfunction]
#[pyo3(signature = (step=None, epoch=None, phase=None))]
pub fn mark(step: Option<i64>, epoch: Option<i64>, phase: Option<&str>) {
    // SAFETY: null, or a ring that is never freed.
    if let Some(ring) = unsafe { RING.load(Ordering::Acquire).as_ref() } {
        let pid = process::pid();
        let phase = phase.filter(|phase| {
            let mut hash = DefaultHasher::new();
            (pid, phase).hash(&mut hash);
            PHASE.swap(hash.finish(), Ordering::Relaxed) != hash.finish()
        });
        ring.mark(&Mark { step, epoch, phase, pid });
    }
}

/// Marks go to the `rankscope run` that this process is under.
#[pyfunction]
pub fn open_marks(path: &str) -> PyResult<()> {
    let ring = Box::leak(Box::new(Ring::open(Path::new(path))?));
    RING.store(ring, Ordering::Release);
    Ok(())
}

/// Marks go to our own recorder, which starts.
pub fn begin() -> std::io::Result<Reader> {
    let ring = match OWN.get() {
        Some(ring) => ring.clone(),
        None => {
            let made = Arc::new(Ring::private()?);
            OWN.get_or_init(|| made).clone()
        }
    };
    ring.clear();
    PHASE.store(0, Ordering::Relaxed);
    let reader = Reader::new(ring.clone());
    RING.store(Arc::as_ptr(&ring).cast_mut(), Ordering::Release);
    Ok(reader)
}

/// Marks go nowhere.
pub fn end() {
    RING.store(null_mut(), Ordering::Release);
}
