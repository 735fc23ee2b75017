//! One writer a device: of the recorders of one job on this node, the one whose GPU it is; of a GPU that is nobody's,
//! one of them.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rankscope_core::deliver::names::fnv1a;
use rankscope_core::gpu::Gpu;
use rankscope_core::gpu::owner::Confidence;

use crate::env_vars;

pub struct Claims {
    job: String,
    /// Where a lock can be held; `None`: nowhere, so everybody writes.
    dir: Option<PathBuf>,
    /// By UUID, and whether it is the lock of an owner.
    held: HashMap<(Arc<str>, bool), File>,
    /// Of GPUs that are nobody's.
    free_since: HashMap<Arc<str>, Instant>,
}

impl Drop for Claims {
    /// Who opened a file before and locks it now has a lock of a job that is ending.
    fn drop(&mut self) {
        let held: Vec<_> = self.held.keys().cloned().collect();
        for path in held.iter().filter_map(|(uuid, owner)| self.path(uuid, *owner)) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A GPU has to be nobody's for so long: ranks of a node begin and end at slightly different times.
const OTHERS_FIRST: Duration = Duration::from_secs(5);

impl Claims {
    pub fn new(job: &str) -> Claims {
        let given = env_vars::runtime_dir().map(PathBuf::from);
        let places = given.into_iter().chain(["/dev/shm", "/tmp"].map(PathBuf::from));
        let dir = places.into_iter().find(|dir| dir.is_dir());
        Claims { job: job.to_owned(), dir, held: HashMap::new(), free_since: HashMap::new() }
    }

    /// Whether this recorder writes that GPU. `several`: more than one rank is on this node.
    pub fn hold(&mut self, gpu: &Gpu, several: bool) -> bool {
        let Some(uuid) = &gpu.uuid else { return true };
        if gpu.owner.confidence > Confidence::None {
            return self.lock(uuid, true);
        }
        // Another's, as soon as one says that it is.
        let free = self.lock(uuid, true) && self.lock(uuid, false);
        self.held.remove(&(uuid.clone(), true));
        let since = *self.free_since.entry(uuid.clone()).or_insert_with(Instant::now);
        let taken = free && (!several || since.elapsed() >= OTHERS_FIRST);
        if !taken {
            self.held.remove(&(uuid.clone(), false));
        }
        if !free {
            self.free_since.remove(uuid);
        }
        taken
    }

    /// Named by job and device.
    fn path(&self, uuid: &str, owner: bool) -> Option<PathBuf> {
        let name = format!("{}\0gpu:{uuid}\0{owner}", self.job);
        Some(self.dir.as_ref()?.join(format!("rankscope-{:016x}.lock", fnv1a(name.as_bytes()))))
    }

    fn lock(&mut self, uuid: &Arc<str>, owner: bool) -> bool {
        let key = (uuid.clone(), owner);
        let Some(path) = self.path(uuid, owner).filter(|_| !self.held.contains_key(&key)) else {
            return true;
        };
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o644).open(&path);
        // Of another user: locking needs no right to write.
        let Ok(file) = file.or_else(|_| File::open(&path)) else { return true };
        // SAFETY: a descriptor that is open; flock touches no memory.
        let locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0;
        if locked {
            self.held.insert(key, file);
        }
        locked
    }
}
