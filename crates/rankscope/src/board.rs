//! What the recorders of one job tell each other through files, where they share a file system: who writes an identity
//! (whoever holds the lock of its file), and which ranks are here. The kernel releases the locks of one that dies.
//!
//! Files are of mode 0644 and opened for reading, so that a recorder of another user can lock them too. Never on a
//! network file system, whose locks may hang.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rankscope_core::deliver::election::hash;
use rankscope_core::ranks;
use serde::{Deserialize, Serialize};

use crate::env_vars;
use crate::store::is_on_local;

const LITTER_AFTER: Duration = Duration::from_secs(24 * 3600);

pub struct Board {
    directory: PathBuf,
    /// Begin of the name of every file of the job.
    prefix: String,
    /// Ours, locked while we live.
    card: (PathBuf, File),
    said: Card,
    held: BTreeMap<String, (PathBuf, File)>,
}

/// What a recorder says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Card {
    /// In short.
    pub ranks: String,
    /// Hashes of the identities that it reads.
    pub reads: BTreeSet<String>,
    #[serde(skip)]
    pub is_alive: bool,
}

impl Board {
    /// The first directory that takes files. `None`: every recorder stands alone.
    pub fn join(key: &str, rank: Option<u32>) -> Option<Board> {
        let places = env_vars::runtime_dir()
            .into_iter()
            .chain(["/dev/shm".to_owned(), "/tmp".to_owned()])
            .map(PathBuf::from);
        let mut board =
            places.filter(|place| is_on_local(place)).find_map(|place| Board::join_in(&place, key).ok())?;
        // Without it others count one rank less for a window.
        let _ = board.say(&rank.into_iter().collect(), BTreeSet::new());
        Some(board)
    }

    fn join_in(directory: &Path, key: &str) -> io::Result<Board> {
        sweep(directory);
        let prefix = format!("rankscope-{}-", hash(key));
        // Pids are not unique where containers share the directory.
        let path = directory.join(format!("{prefix}by-{:016x}", fastrand::u64(..)));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&path)?;
        lock(&file)?;
        let (card, said) = ((path, file), Card::default());
        Ok(Board { directory: directory.to_owned(), prefix, card, said, held: BTreeMap::new() })
    }

    pub fn say(&mut self, ranks: &BTreeSet<u32>, reads: BTreeSet<String>) -> io::Result<()> {
        let said = Card { ranks: ranks::in_short(ranks), reads, is_alive: true };
        if said == self.said {
            return Ok(());
        }
        let (path, _) = &self.card;
        // Whole or not at all, for who reads it meanwhile. The lock goes on with the new file.
        let new = path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&new)?;
        lock(&file)?;
        file.write_all(serde_json::to_string(&said)?.as_bytes())?;
        std::fs::rename(&new, path)?;
        self.card.1 = file;
        self.said = said;
        Ok(())
    }

    /// The cards of all others, also of those that have died.
    pub fn others(&self) -> Vec<Card> {
        let cards = self.files("by-").into_iter().filter(|path| *path != self.card.0);
        let card = |path: PathBuf| {
            let file = File::open(&path).ok()?;
            let card: Card = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
            Some(Card { is_alive: lock(&file).is_err(), ..card })
        };
        cards.filter_map(card).collect()
    }

    pub fn holds(&self, identity: &str) -> bool {
        self.held.contains_key(identity)
    }

    /// Whether the identity is ours to write, from now on or already.
    pub fn hold(&mut self, identity: &str) -> bool {
        if self.holds(identity) {
            return true;
        }
        let path = self.directory.join(format!("{}of-{}", self.prefix, hash(identity)));
        let Ok(file) = open(&path) else { return false };
        // Whoever cleaned up may have removed the file between opening and locking.
        if lock(&file).is_err() || !is_the_same(&file, &path) {
            return false;
        }
        self.held.insert(identity.to_owned(), (path, file));
        true
    }

    fn files(&self, kind: &str) -> Vec<PathBuf> {
        let start = format!("{}{kind}", self.prefix);
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&start)))
            .map(|entry| entry.path())
            .collect()
    }

    /// The last one out removes the job's files; until then others have to know who was here.
    pub fn leave(self) {
        if self.others().iter().any(|card| card.is_alive) {
            return;
        }
        for path in self.files("of-") {
            let held = self.held.values().any(|(own, _)| *own == path);
            let free = |path: &Path| File::open(path).is_ok_and(|file| lock(&file).is_ok());
            if held || free(&path) {
                let _ = std::fs::remove_file(&path);
            }
        }
        for path in self.files("by-") {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Removes what jobs left here whose recorders were all killed, once nothing of them is locked or younger than a day.
fn sweep(directory: &Path) {
    let mut jobs: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("rankscope-")) {
            let job = rest.split('-').next().unwrap_or_default().to_owned();
            jobs.entry(job).or_default().push(entry.path());
        }
    }
    let is_litter = |path: &PathBuf| {
        let age = std::fs::symlink_metadata(path)
            .ok()
            .filter(std::fs::Metadata::is_file)?
            .modified()
            .ok()?
            .elapsed();
        (age.is_ok_and(|age| age > LITTER_AFTER) && lock(&File::open(path).ok()?).is_ok()).then_some(())
    };
    for files in jobs.into_values().filter(|files| files.iter().all(|path| is_litter(path).is_some())) {
        for path in files {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// In a directory like /tmp the kernel may refuse O_CREAT on a file of another user, so it is only opened.
fn open(path: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path);
            match made {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => File::open(path),
            }
        }
        opened => opened,
    }
}

fn is_the_same(file: &File, path: &Path) -> bool {
    let there = std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    file.metadata().is_ok_and(|meta| there.is_ok_and(|there| there == (meta.dev(), meta.ino())))
}

fn lock(file: &File) -> io::Result<()> {
    // SAFETY: a descriptor that is open; flock touches no memory.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(dir: &tempfile::TempDir, ranks: &[u32], reads: &[&str]) -> Board {
        let mut board = Board::join_in(dir.path(), "job").unwrap();
        let ranks = ranks.iter().copied().collect();
        board.say(&ranks, reads.iter().map(|r| hash(r)).collect()).unwrap();
        board
    }

    #[test]
    fn one_holds_and_the_next_takes_over() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = join(&dir, &[0], &["node:a"]);
        let mut second = join(&dir, &[1], &["node:a"]);
        let mut other_job = Board::join_in(dir.path(), "another").unwrap();
        assert!(first.hold("node:a") && first.hold("node:a") && !second.hold("node:a"));
        assert!(second.hold("container:b") && other_job.hold("node:a"));
        assert_eq!(second.others(), [Card { is_alive: true, ..first.said.clone() }]);
        drop(first);
        let others = second.others();
        assert_eq!((others.len(), others[0].ranks.as_str(), others[0].is_alive), (1, "0", false));
        assert!(second.hold("node:a"));
    }

    #[test]
    fn what_killed_jobs_left_goes_after_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let age = |path: &Path| {
            let old = std::time::SystemTime::now() - LITTER_AFTER * 2;
            File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
        };
        let mut alive = Board::join_in(dir.path(), "alive").unwrap();
        let mut killed = Board::join_in(dir.path(), "killed").unwrap();
        assert!(alive.hold("node:a") && killed.hold("node:a"));
        let files = |board: &Board| [board.files("by-"), board.files("of-")].concat();
        let of_alive = files(&alive);
        let of_killed = files(&killed);
        let gpu = dir.path().join("rankscope-0123456789abcdef.lock");
        std::fs::write(&gpu, "").unwrap();
        let others = dir.path().join("someone-else");
        std::fs::write(&others, "").unwrap();
        of_alive.iter().chain(&of_killed[..1]).chain([&gpu, &others]).for_each(|path| age(path));
        drop(killed);
        alive.held.clear();
        sweep(dir.path());
        assert!(
            of_alive.iter().chain(&of_killed).chain([&others]).all(|path| path.exists()),
            "one is young, one locked"
        );
        assert!(!gpu.exists());
        age(&of_killed[1]);
        sweep(dir.path());
        assert!(of_alive.iter().all(|path| path.exists()) && !of_killed.iter().any(|path| path.exists()));
    }

    #[test]
    fn the_last_one_out_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = join(&dir, &[0], &[]);
        let mut second = join(&dir, &[1], &[]);
        assert!(first.hold("node:a") && second.hold("node:b"));
        first.leave();
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_some());
        assert_eq!(second.others().len(), 1, "who was here stays known");
        second.leave();
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
    }
}
