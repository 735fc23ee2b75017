//! How full the root file system and other mounts are.

use super::{megabytes, put_labelled};
use crate::gap::{Gap, Measured};
use crate::reading::Readings;
use crate::sample::{Sample, Space};
use crate::series;

pub(super) fn rates(current: &Sample, out: &mut Readings) {
    for fs in &current.file_systems {
        let [usage, share, available] = match fs.label {
            None => [&series::ROOTFS_USAGE, &series::ROOTFS_PERCENTAGE, &series::ROOTFS_AVAILABLE],
            Some(_) => [&series::MOUNT_USAGE, &series::MOUNT_PERCENTAGE, &series::MOUNT_AVAILABLE],
        };
        let space = fs.space.value.clone().and_then(sound);
        let (label, origin) = (fs.label.as_ref(), &fs.space.origin);
        put_labelled(out, usage, label, space.clone().map(|s| megabytes(s.used())), origin);
        let percentage = space.clone().and_then(|s| match s.used().saturating_add(s.free_to_users()) {
            0 => Err(Gap::absent("neither used nor available space")),
            whole => Ok(s.used() as f64 / whole as f64 * 100.0),
        });
        put_labelled(out, share, label, percentage, origin);
        put_labelled(out, available, label, space.map(|s| megabytes(s.free_to_users())), origin);
    }
}

/// An automounter's placeholder and the like have no blocks at all.
fn sound(space: Space) -> Measured<Space> {
    if space.blocks == 0 { Err(Gap::absent("the file system reports no blocks")) } else { Ok(space) }
}

impl Space {
    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.blocks.saturating_sub(self.free).saturating_mul(self.fragment_size)
    }

    /// Bytes that an unprivileged user can still write.
    pub fn free_to_users(&self) -> u64 {
        self.available.saturating_mul(self.fragment_size)
    }
}
