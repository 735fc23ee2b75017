//! The store on real file systems, with real kills and real failures.

use std::ffi::CString;
use std::io::Error;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rankscope::store::{About, End, Event, Finished, Target, Writer};
use rankscope_core::reading::{Origin, Reading, Readings};
use rankscope_core::series;
use rankscope_core::window::{Window, Windows};
use rusqlite::{Connection, OpenFlags};

/// So long a test may hang before it fails; nothing is measured by it.
const HANG: Duration = Duration::from_secs(60);
/// Set in the copy of the test binary that a test starts.
const INSIDE: &str = "RANKSCOPE_TEST_INSIDE";
const VALUES: usize = 70;

/// Runs the test's body in a process with its own mount table, so that a mount made here blocks nobody else.
fn in_own_mounts(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let mut command = again(test, "mounts");
    // SAFETY: the closure only makes system calls, which are async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            let private = libc::MS_REC | libc::MS_PRIVATE;
            let null = std::ptr::null();
            if libc::unshare(libc::CLONE_NEWNS) != 0
                || libc::mount(null, c"/".as_ptr(), null, private, null.cast()) != 0
            {
                return Err(Error::last_os_error());
            }
            Ok(())
        });
    }
    let mut child = command.spawn().expect("a mount namespace (needs root)");
    let deadline = Instant::now() + HANG;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{test} inside its mount namespace: {status}");
            return;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("{test} hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// This test binary, told to run one test only.
fn again(test: &str, inside: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(INSIDE, inside);
    command
}

fn mount(source: &str, at: &Path, kind: &str, options: &str) {
    let text = |s: &str| CString::new(s).unwrap();
    let (source, kind, options) = (text(source), text(kind), text(options));
    let at = text(at.to_str().unwrap());
    // SAFETY: all pointers are to NUL-terminated strings that outlive the call.
    let got = unsafe { libc::mount(source.as_ptr(), at.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) };
    assert_eq!(got, 0, "mount {kind:?}: {}", Error::last_os_error());
}

fn target(store: &Path) -> Target {
    Target { asked: Some(store.to_owned()), folder: "job".into(), rank: 0, ..Target::default() }
}

fn about() -> About {
    About {
        job: "job".into(),
        rank: Some(0),
        interval: Duration::from_secs(1),
        window: Duration::from_secs(10),
        program: "train".into(),
        ..About::default()
    }
}

fn tick(second: u64) -> Readings {
    let origin = Arc::new(Origin { identity: None, source: "/file".into(), level: None, note: None });
    let reading = |n: usize| Reading {
        series: &series::MOUNT_USAGE,
        label: Some(format!("m{n}").into()),
        value: second as f64 + n as f64 / 7.0,
        peak: None,
        origin: origin.clone(),
    };
    Readings {
        unix_ms: 1_700_000_000_000 + second as i64 * 1000,
        boottime_ns: second * 1_000_000_000,
        present: (0..VALUES).map(reading).collect(),
        missing: Vec::new(),
    }
}

fn window(second: u64) -> Window {
    let mut windows = Windows::new(1_700_000_000_000, 0, 10_000_000_000);
    windows.add(&tick(second));
    windows.close().unwrap()
}

fn event() -> Event {
    Event { unix_ms: 0, boottime_ns: 0, kind: "mark".into(), detail: serde_json::json!({"step": 1}) }
}

fn finish(writer: Writer) -> Finished {
    writer.finish(Some(End { unix_ms: 1, boottime_ns: 1, exit_code: Some(0), ..End::default() }), HANG)
}

fn read(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn count(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + HANG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {HANG:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn path_of(writer: &Writer) -> PathBuf {
    until("a place", || {
        assert_eq!(writer.problem(), None);
        writer.path()
    })
}

fn files(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_record_ends_as_one_plain_file() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::start(target(dir.path()), about());
    for s in 1..=100 {
        writer.tick(&tick(s));
    }
    writer.window(window(5));
    writer.event(event());
    let end = End {
        unix_ms: 5,
        boottime_ns: 6,
        signal: Some(9),
        reason: Some("oom_killed".into()),
        ..End::default()
    };
    let finished = writer.finish(Some(end), HANG);
    let path = dir.path().join("job/rank_00.sqlite");
    assert_eq!(
        finished,
        Finished { path: Some(path.clone()), dropped_ticks: 0, dropped_items: 0, problem: None }
    );
    assert_eq!(files(&dir.path().join("job")), ["rank_00.sqlite"]);
    let db = read(&path);
    assert_eq!(count(&db, "SELECT count(*) FROM tick_value"), 100 * VALUES as i64);
    assert_eq!(count(&db, "SELECT count(*) FROM window"), 1);
    assert_eq!(count(&db, "SELECT count(*) FROM event"), 1);
    assert_eq!(count(&db, "SELECT count(*) FROM attempt WHERE signal = 9 AND exit_code IS NULL"), 1);
    // No -wal or -shm is needed, so it opens on a read-only disk too.
    let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete");
}

#[test]
fn readers_get_in_while_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::start(target(dir.path()), about());
    let path = path_of(&writer);
    let db = read(&path);
    let mut second = 0;
    let mut seen = 0;
    until("ten commits seen", || {
        second += 1;
        writer.tick(&tick(second));
        writer.flush();
        let now = count(&db, "SELECT count(*) FROM tick");
        let values = count(&db, "SELECT count(*) FROM v_tick WHERE tick_id <= 5");
        assert_eq!(values, now.min(5).max(values / VALUES as i64) * VALUES as i64);
        seen += i32::from(now > 0);
        (seen >= 10).then_some(())
    });
    // The shell is another process and another version of SQLite.
    let query = "SELECT count(*) > 0, max(unit) FROM v_tick WHERE series = 'mount_m3_usage_megabytes'";
    let shell =
        Command::new("sqlite3").arg("-readonly").arg(&path).arg(query).output().expect("the sqlite3 shell");
    assert_eq!(
        String::from_utf8_lossy(&shell.stdout),
        "1|MB\n",
        "{}",
        String::from_utf8_lossy(&shell.stderr)
    );
    // A reader that stays may prevent the plain file, not the data.
    let finished = finish(writer);
    assert_eq!(finished.problem, None);
    assert_eq!(count(&db, "SELECT count(*) FROM attempt WHERE exit_code = 0"), 1);
}

#[test]
fn recorders_started_at_once_never_share_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let writers: Vec<Writer> = (0..4).map(|_| Writer::start(target(dir.path()), about())).collect();
    for writer in &writers {
        writer.tick(&tick(1));
    }
    let mut paths: Vec<PathBuf> = writers.into_iter().map(|w| finish(w).path.unwrap()).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 4);
    assert_eq!(
        files(&dir.path().join("job")),
        ["rank_00-2.sqlite", "rank_00-3.sqlite", "rank_00-4.sqlite", "rank_00.sqlite"]
    );
    for path in paths {
        assert_eq!(count(&read(&path), "SELECT count(*) FROM tick"), 1);
    }
}

/// Writes until it is killed.
fn write_for_ever(store: &Path) -> ! {
    let writer = Writer::start(target(store), about());
    for second in 1.. {
        writer.tick(&tick(second));
        if second % 10 == 0 {
            writer.window(window(second));
        }
        writer.flush();
        std::thread::sleep(Duration::from_micros(300));
    }
    unreachable!()
}

#[test]
fn what_is_committed_survives_kill_9() {
    if let Some(store) = std::env::var_os(INSIDE) {
        write_for_ever(Path::new(&store));
    }
    for round in 0..12_u64 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("job/rank_00.sqlite");
        let mut child = Killed(
            again("store::what_is_committed_survives_kill_9", dir.path().to_str().unwrap())
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        );
        // Kills fall all over: into the first commits as well as behind the first checkpoints.
        let wanted = (round * round * 7) as i64;
        let committed = until("commits", || {
            let db = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
            let max =
                db.query_row("SELECT coalesce(max(id), 0) FROM tick", [], |row| row.get::<_, i64>(0)).ok()?;
            (max > wanted).then_some(max)
        });
        std::thread::sleep(Duration::from_micros(round * 370));
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        let db = Connection::open(&path).unwrap();
        let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        let kept = count(&db, "SELECT max(id) FROM tick");
        assert!(kept >= committed, "{kept} of {committed}");
        // All ticks are there, each with all of its values, and the windows with theirs.
        let whole =
            "SELECT count(*) FROM tick t WHERE (SELECT count(*) FROM tick_value WHERE tick_id = t.id) = 70";
        // On a slow machine the first ones are 15 minutes old already, by the record's own clock, and thinned out.
        let contiguous = kept - count(&db, "SELECT min(id) FROM tick") + 1;
        assert_eq!(count(&db, "SELECT count(*) FROM tick"), contiguous);
        assert_eq!(count(&db, whole), contiguous);
        let per_window = "SELECT count(*) FROM window w WHERE (SELECT count(*) FROM window_value WHERE window_id = w.id) = 70";
        assert_eq!(count(&db, per_window), count(&db, "SELECT count(*) FROM window"));
        assert!(count(&db, "SELECT count(*) FROM window") >= committed / 10 - 1);
    }
}

/// A child that does not outlive a failed assertion.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_full_disk_is_said_counted_and_got_over() {
    in_own_mounts("store::a_full_disk_is_said_counted_and_got_over", || {
        let dir = tempfile::tempdir().unwrap();
        mount("none", dir.path(), "tmpfs", "size=4m");
        let writer = Writer::start(target(dir.path()), about());
        let path = path_of(&writer);
        let filler = dir.path().join("filler");
        std::fs::write(&filler, vec![1; 3_500_000]).unwrap();
        let mut second = 0;
        let problem = until("a full disk", || {
            second += 1;
            writer.tick(&tick(second));
            writer.flush();
            writer.problem()
        });
        assert!(problem.contains("full"), "{problem}");
        // While it lasts windows and events are kept, ticks replaced by newer ones.
        for s in second + 1..second + 2000 {
            writer.tick(&tick(s));
        }
        writer.window(window(second));
        writer.event(event());
        std::fs::remove_file(&filler).unwrap();
        let finished = finish(writer);
        assert_eq!(finished.path.as_deref(), Some(path.as_path()));
        assert!(finished.dropped_ticks >= 1000, "{finished:?}");
        let db = read(&path);
        assert_eq!(count(&db, "SELECT count(*) FROM attempt WHERE exit_code = 0"), 1, "{finished:?}");
        assert_eq!(count(&db, "SELECT count(*) FROM event"), 1);
        assert_eq!(count(&db, "SELECT count(*) FROM window"), 1);
        assert_eq!(
            count(&db, "SELECT value FROM meta WHERE key = 'dropped_ticks'"),
            finished.dropped_ticks as i64
        );
        assert_eq!(count(&db, "SELECT max(boottime_ns) / 1000000000 FROM tick"), second as i64 + 1999);
        let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
    });
}

#[test]
fn a_disk_that_stays_full_ends_in_time_and_is_said() {
    in_own_mounts("store::a_disk_that_stays_full_ends_in_time_and_is_said", || {
        let dir = tempfile::tempdir().unwrap();
        mount("none", dir.path(), "tmpfs", "size=300k");
        let writer = Writer::start(target(dir.path()), about());
        let mut second = 0;
        until("a full disk", || {
            second += 1;
            writer.tick(&tick(second));
            writer.flush();
            writer.problem()
        });
        let finished = writer.finish(Some(End::default()), Duration::from_millis(500));
        assert!(finished.problem.unwrap().contains("full"));
        assert!(finished.dropped_ticks > 0);
    });
}

#[test]
fn without_a_place_the_record_is_in_memory_and_says_so() {
    in_own_mounts("store::without_a_place_the_record_is_in_memory_and_says_so", || {
        // Root may write where the mode forbids it, so the file system itself is read-only.
        let dir = tempfile::tempdir().unwrap();
        mount("none", dir.path(), "tmpfs", "ro");
        let writer = Writer::start(target(dir.path()), about());
        for s in 1..50 {
            writer.tick(&tick(s));
        }
        writer.window(window(1));
        let finished = finish(writer);
        assert_eq!((finished.path, finished.dropped_ticks), (None, 0));
        let problem = finished.problem.unwrap();
        assert!(problem.contains("in memory") && problem.contains("Read-only"), "{problem}");
        assert_eq!(problem.lines().count(), 1);
    });
}

#[test]
fn where_shared_memory_cannot_be_mapped_the_journal_is_truncated() {
    let dir = tempfile::tempdir().unwrap();
    // A directory in the place of the -shm file: opening it fails as on file systems that cannot map one.
    std::fs::create_dir_all(dir.path().join("job/rank_00.sqlite-shm")).unwrap();
    let writer = Writer::start(target(dir.path()), about());
    let path = path_of(&writer);
    let db = read(&path);
    for s in 1..=20 {
        writer.tick(&tick(s));
    }
    writer.window(window(1));
    until("a commit", || (count(&db, "SELECT count(*) FROM window") == 1).then_some(()));
    let finished = finish(writer);
    assert_eq!(finished, Finished { path: Some(path), dropped_ticks: 0, dropped_items: 0, problem: None });
    let mode: String =
        db.query_row("SELECT value FROM meta WHERE key = 'journal_mode'", [], |r| r.get(0)).unwrap();
    assert_eq!(mode, "truncate");
    assert_eq!(count(&db, "SELECT count(*) FROM tick"), 20);
}

/// A fuse mount that nobody serves: whoever touches it waits until the returned file is closed.
fn dead_mount(at: &Path) -> std::fs::File {
    use std::os::fd::AsRawFd;
    let device = std::fs::File::options().read(true).write(true).open("/dev/fuse").expect("/dev/fuse");
    mount("dead", at, "fuse", &format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd()));
    device
}

#[test]
fn a_disk_that_never_answers_holds_up_nobody() {
    in_own_mounts("store::a_disk_that_never_answers_holds_up_nobody", || {
        let dir = tempfile::tempdir().unwrap();
        let device = dead_mount(dir.path());
        let writer = Writer::start(target(&dir.path().join("runs")), about());
        for s in 1..=2000 {
            writer.tick(&tick(s));
        }
        for s in 1..=200 {
            writer.window(window(s));
        }
        let finished = writer.finish(Some(End::default()), Duration::from_millis(300));
        assert_eq!((finished.path, finished.dropped_ticks), (None, 2000));
        assert!(finished.problem.unwrap().contains("did not answer"));
        // Without this the process could not end before the thread that waits.
        drop(device);
    });
}

#[test]
fn by_default_a_mount_that_hangs_is_not_even_touched() {
    in_own_mounts("store::by_default_a_mount_that_hangs_is_not_even_touched", || {
        let dir = tempfile::tempdir().unwrap();
        let (dead, link, tmp) = (dir.path().join("dead"), dir.path().join("link"), dir.path().join("tmp"));
        std::fs::create_dir(&dead).unwrap();
        std::fs::create_dir(&tmp).unwrap();
        std::os::unix::fs::symlink(&dead, &link).unwrap();
        let _device = dead_mount(&dead);
        for cwd in [dead, link] {
            let target = Target {
                cwd: Some(cwd),
                tmpdir: Some(tmp.clone()),
                folder: "job".into(),
                ..Target::default()
            };
            let path = finish(Writer::start(target, about())).path.unwrap();
            assert!(path.starts_with(tmp.join("rankscope-runs/job")), "{}", path.display());
        }
    });
}

#[test]
fn in_a_shared_tmp_somebody_elses_folder_is_left_alone() {
    let tmp = tempfile::tempdir().unwrap();
    let theirs = tmp.path().join("rankscope-runs");
    std::fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65534), None).expect("chown (needs root)");
    let target = Target { tmpdir: Some(tmp.path().to_owned()), folder: "job".into(), ..Target::default() };
    let path = finish(Writer::start(target, about())).path.unwrap();
    assert_eq!(path, tmp.path().join("rankscope-runs-0/job/rank_00.sqlite"));
    assert!(files(&theirs).is_empty());
}
