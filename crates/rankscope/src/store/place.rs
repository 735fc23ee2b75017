//! Where the record goes: which folder, and a file in it that no other recorder has.

use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rankscope_core::civil;

use super::mounts::Mounts;
use super::reader::Reader;

/// Recorders of one rank in one folder: a limit only so that the search ends.
const MAX_RECORDERS: u32 = 10_000;
/// Longest folder name made of a KEY, in bytes.
const MAX_NAME: usize = 120;

/// Folders in which an earlier attempt is looked for.
const FOLDERS_BEFORE: usize = 20;

/// What decides where the record goes. Nothing here has touched a file system yet.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// `--store`, else `$RANKSCOPE_STORE`: taken as it is, local or not.
    pub asked: Option<PathBuf>,
    /// Working directory, for `./rankscope-runs`.
    pub cwd: Option<PathBuf>,
    /// `$TMPDIR`, if set.
    pub tmpdir: Option<PathBuf>,
    /// Name of the folder: see `folder_name`.
    pub folder: String,
    pub rank: u32,
}

/// A folder to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub base: PathBuf,
    /// Under a TMPDIR that everybody may write, a folder of that name can be somebody else's.
    must_be_ours: bool,
}

/// The folders to try, best first, and why the others are not among them.
pub fn candidates(target: &Target, mounts: &Mounts) -> (Vec<Candidate>, Vec<String>) {
    let mut found = Vec::new();
    let mut refused = Vec::new();
    if let Some(asked) = &target.asked {
        let base = std::path::absolute(asked).unwrap_or_else(|_| asked.clone());
        match refuse_shm(&base) {
            Ok(()) => found.push(Candidate { base, must_be_ours: false }),
            Err(why) => refused.push(why),
        }
        return (found, refused);
    }
    let mut consider = |base: PathBuf, must_be_ours: bool| {
        let local = mounts.resolve_local(&base).and_then(|base| refuse_shm(&base).map(|()| base));
        match local {
            Ok(base) => found.push(Candidate { base, must_be_ours }),
            Err(why) => refused.push(why),
        }
    };
    if let Some(cwd) = &target.cwd {
        consider(cwd.join("rankscope-runs"), false);
    }
    let tmpdir = target.tmpdir.clone().unwrap_or_else(|| PathBuf::from("/tmp"));
    if tmpdir.is_absolute() {
        consider(tmpdir.join("rankscope-runs"), true);
        consider(tmpdir.join(format!("rankscope-runs-{}", own_uid())), true);
    }
    (found, refused)
}

/// Shared memory is charged to the job's own memory limit, and data loaders need it.
fn refuse_shm(base: &Path) -> Result<(), String> {
    if base.starts_with("/dev/shm") {
        return Err(format!("{}: /dev/shm is part of the job's memory", base.display()));
    }
    Ok(())
}

/// Makes the folder and, in it, a file that was not there before.
pub fn create(candidate: &Candidate, target: &Target) -> Result<PathBuf, String> {
    let folder = candidate.base.join(&target.folder);
    let say = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let make =
        |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| say(path, e));
    make(&candidate.base)?;
    if candidate.must_be_ours {
        let owner = std::fs::symlink_metadata(&candidate.base).map_err(|e| say(&candidate.base, e))?.uid();
        if owner != own_uid() {
            return Err(format!("{}: belongs to uid {owner}", candidate.base.display()));
        }
    }
    make(&folder)?;
    for n in 1..=MAX_RECORDERS {
        let path = folder.join(file_name(target.rank, n));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => return Ok(path),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(say(&path, e)),
        }
    }
    Err(format!("{}: {MAX_RECORDERS} records of this rank are there already", folder.display()))
}

fn file_name(rank: u32, n: u32) -> String {
    let stem = format!("rank_{rank:02}");
    if n == 1 { format!("{stem}.sqlite") } else { format!("{stem}-{n}.sqlite") }
}

/// The folder's name: the job's KEY if there is one, else the time of the start and the pid.
pub fn folder_name(key: Option<&str>, start_unix_ms: i64, pid: u32) -> String {
    match key.filter(|key| !key.is_empty()) {
        Some(key) => key_name(key),
        None => time_name(start_unix_ms, pid),
    }
}

/// A KEY in file-name characters. One that had to be changed gets a hash, so that two keys never meet in one folder.
fn key_name(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let mut name: String = key.chars().map(|c| if plain(c) { c } else { '_' }).take(MAX_NAME).collect();
    if name.starts_with(['.', '-']) {
        name.replace_range(..1, "_");
    }
    if name == key { name } else { format!("{name}-{:08x}", fnv1a(key.as_bytes())) }
}

fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// `YYYY-MM-DDTHH-MM-SS-<pid>`, UTC: sorts by time and has no colon, which Windows shares refuse.
fn time_name(unix_ms: i64, pid: u32) -> String {
    let seconds = unix_ms.div_euclid(1000);
    let (year, month, day) = civil::date(seconds.div_euclid(86_400));
    let s = seconds.rem_euclid(86_400);
    format!("{year:04}-{month:02}-{day:02}T{:02}-{:02}-{:02}-{pid}", s / 3600, s / 60 % 60, s % 60)
}

/// Where a record would go, decided without writing anything: the first candidate that could be made.
pub fn would_go_to(target: &Target) -> Result<PathBuf, String> {
    let (found, mut refused) = candidates(target, &Mounts::of_this_process());
    for candidate in found {
        let there = candidate.base.ancestors().find(|p| p.is_dir()).unwrap_or(Path::new("/"));
        let path = std::ffi::CString::new(there.as_os_str().as_encoded_bytes()).unwrap_or_default();
        // SAFETY: the path ends with NUL and outlives the call.
        if unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) } == 0 {
            return Ok(candidate.base);
        }
        refused.push(format!("{}: {}", candidate.base.display(), std::io::Error::last_os_error()));
    }
    Err(refused.join("; "))
}

impl Target {
    /// For one who looks for records.
    pub fn to_read(asked: Option<PathBuf>) -> Target {
        Target {
            asked,
            cwd: std::env::current_dir().ok(),
            tmpdir: std::env::var_os("TMPDIR").map(PathBuf::from),
            ..Target::default()
        }
    }
}

/// The folder and the records that are meant by a record, its folder, or a directory of such folders; by nothing: the
/// newest among the places where one could be.
pub fn find(given: Option<&Path>, target: &Target) -> Result<(PathBuf, Vec<PathBuf>), String> {
    let newest = |target: &Target| folders(target).into_iter().max().map(|(_, path)| path);
    let given = match given {
        Some(given) => given.to_owned(),
        None => newest(target).ok_or("no record was found: give its folder")?,
    };
    if given.is_file() {
        let folder = given.parent().filter(|p| !p.as_os_str().is_empty());
        return Ok((folder.map_or_else(|| PathBuf::from("."), Path::to_owned), vec![given]));
    }
    let files = records_in(&given);
    if !files.is_empty() {
        return Ok((given, files));
    }
    // As `--store` takes it.
    let inside = newest(&Target { asked: Some(given.clone()), ..Target::default() });
    let why = if given.exists() { "no record in it" } else { "no such file or folder" };
    let folder = inside.ok_or_else(|| format!("{}: {why}", given.display()))?;
    let files = records_in(&folder);
    Ok((folder, files))
}

/// The folder of the newest attempt that was delivered to that run. When a file was written says little: a reader may
/// do that too.
pub fn folder_of_run(target: &Target, run_id: &str) -> Option<PathBuf> {
    let begun = |file: &PathBuf| {
        let reader = Reader::open(file).ok()?;
        let attempt = reader.attempt().ok()?;
        reader.has_run(run_id).unwrap_or(false).then_some(attempt.start_unix_ms)
    };
    let newest = |folder: &PathBuf| records_in(folder).iter().filter_map(begun).max();
    let with_run = folders(target).into_iter().filter_map(|(_, folder)| Some((newest(&folder)?, folder)));
    with_run.max().map(|(_, folder)| folder)
}

/// Where an earlier attempt's record may be: those in the same folder, and those of the newest other folders.
pub fn records_before(own: &Path, target: &Target) -> Vec<PathBuf> {
    let mut all = folders(target);
    all.sort();
    let newest = all.into_iter().rev().map(|(_, path)| path).take(FOLDERS_BEFORE);
    let of_folders = newest.flat_map(|folder| records_in(&folder));
    let mut files: Vec<PathBuf> = own.parent().into_iter().flat_map(records_in).chain(of_folders).collect();
    files.sort();
    files.dedup();
    files.retain(|file| file != own);
    files
}

/// Folders with records, and when each was written last.
fn folders(target: &Target) -> Vec<(SystemTime, PathBuf)> {
    let (found, _) = candidates(target, &Mounts::of_this_process());
    let folders = found.iter().filter_map(|c| std::fs::read_dir(&c.base).ok()).flatten().flatten();
    let dated = folders.filter_map(|entry| {
        let files = records_in(&entry.path());
        let newest = files.iter().filter_map(|f| f.metadata().ok()?.modified().ok()).max()?;
        Some((newest, entry.path()))
    });
    dated.collect()
}

/// Records in a folder, ordered by name.
pub fn records_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "sqlite")).collect();
    files.sort();
    files
}

fn own_uid() -> u32 {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts() -> Mounts {
        Mounts::parse(
            b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /nfs rw - nfs4 server:/ rw\n\
              3 1 0:8 / /dev/shm rw - tmpfs shm rw\n",
        )
    }

    #[test]
    fn asked_for_is_taken_as_it_is_except_shared_memory() {
        let asked =
            |dir: &str| Target { asked: Some(dir.into()), cwd: Some("/".into()), ..Target::default() };
        let (found, _) = candidates(&asked("/nfs/runs"), &mounts());
        assert_eq!(found, [Candidate { base: "/nfs/runs".into(), must_be_ours: false }]);
        let (found, refused) = candidates(&asked("/dev/shm/runs"), &mounts());
        assert!(found.is_empty());
        assert!(refused[0].contains("/dev/shm"), "{refused:?}");
    }

    #[test]
    fn defaults_leave_out_what_is_not_local() {
        let target =
            Target { cwd: Some("/nfs/home".into()), tmpdir: Some("/dev/shm".into()), ..Target::default() };
        let (found, refused) = candidates(&target, &mounts());
        assert!(found.is_empty(), "{found:?}");
        assert!(refused[0].contains("nfs4") && refused[1].contains("/dev/shm"), "{refused:?}");
        let target = Target { cwd: Some("/some dir".into()), ..Target::default() };
        let (found, _) = candidates(&target, &mounts());
        assert_eq!(found[0].base, Path::new("/some dir/rankscope-runs"));
        assert_eq!(found[1].base, Path::new("/tmp/rankscope-runs"));
    }

    #[test]
    fn every_recorder_gets_its_own_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let candidate = Candidate { base: dir.path().join("runs"), must_be_ours: true };
        let target = Target { folder: "job".into(), rank: 3, ..Target::default() };
        let names: Vec<String> = (0..3)
            .map(|_| create(&candidate, &target).unwrap().file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["rank_03.sqlite", "rank_03-2.sqlite", "rank_03-3.sqlite"]);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&candidate.base.join("job")), 0o700);
        assert_eq!(mode(&candidate.base.join("job/rank_03.sqlite")), 0o600);
    }

    #[test]
    fn folder_names_are_file_names_and_do_not_meet() {
        assert_eq!(folder_name(None, 951_782_399_999, 7), "2000-02-28T23-59-59-7");
        assert_eq!(folder_name(None, 951_782_400_000, 7), "2000-02-29T00-00-00-7");
        assert_eq!(folder_name(Some(""), -1, 7), "1969-12-31T23-59-59-7");
        assert_eq!(folder_name(Some("1234.0"), 0, 7), "1234.0");
        let odd = folder_name(Some("a/b:c"), 0, 7);
        assert!(odd.starts_with("a_b_c-"), "{odd}");
        assert_ne!(odd, folder_name(Some("a/b_c"), 0, 7));
        assert!(folder_name(Some(".."), 0, 7).starts_with("_.-"));
        assert!(folder_name(Some(&"é".repeat(500)), 0, 7).len() < 200);
    }
}
