//! The handle that the sampler holds, and the thread that writes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rankscope_core::reading::Readings;
use rankscope_core::window::Window;
use rusqlite::{Connection, ErrorCode};

use super::database::Database;
use super::mounts::Mounts;
use super::place::{self, Target};
use super::queue::{Item, Lost, Queue, TICKS};
use super::{About, End, Event, Finished, StackWindow, schema};

/// Ticks are committed once in this time; windows, events and the end at once.
const COMMIT_EVERY: Duration = Duration::from_secs(1);
/// Waits between attempts while the disk fails: doubled from the first to the last.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);
/// The same once the end has come.
const CLOSING_RETRY: Duration = Duration::from_millis(100);
/// A batch that fails as often for a reason that is not the disk's would fail for ever.
const MAX_ODD_FAILURES: u32 = 5;
const STACK: usize = 512 * 1024;

#[derive(Debug, Default)]
struct State {
    queue: Queue,
    /// What the thread has taken and not yet committed.
    in_flight: Lost,
    flush: bool,
    /// When the end must be written, once it has come.
    closing: Option<Instant>,
    closed: bool,
    /// The file, or the address of a database in memory.
    path: Option<PathBuf>,
    /// A database in memory, for who reads it after the end.
    in_memory: Option<Connection>,
    problem: Option<String>,
}

impl State {
    fn take(&mut self, batch: &mut Vec<Item>) {
        self.in_flight = Lost { ticks: self.queue.ticks() as u64, others: self.queue.others() as u64 };
        self.queue.take(batch);
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a record on its own thread. No call but `finish` waits, however the disk behaves.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
}

impl Writer {
    /// Returns at once: the place is chosen, and the file made, on the thread.
    pub fn start(target: Target, about: About) -> Writer {
        Writer::start_with(target, about, |_| None)
    }

    /// `first` is called on the thread once the file is there; what it gives is in the record before anybody is told
    /// where that is.
    pub fn start_with(
        target: Target,
        about: About,
        first: impl FnOnce(&Path) -> Option<Event> + Send + 'static,
    ) -> Writer {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("rankscope-store".into()).stack_size(STACK);
        if let Err(error) = thread.spawn(move || write_all(&theirs, &target, &about, first)) {
            let mut state = shared.lock();
            state.problem = Some(format!("no record: cannot start a thread: {error}"));
            state.closed = true;
        }
        Writer { shared }
    }

    /// Copies one tick. When the queue is full the oldest tick that waits is dropped and counted.
    pub fn tick(&self, tick: &Readings) {
        let mut state = self.shared.lock();
        state.queue.push_tick(tick);
        // Between these the thread sleeps until its next commit is due.
        let wake = state.queue.ticks() == 1 || state.queue.ticks() == TICKS / 2;
        drop(state);
        if wake {
            self.shared.work.notify_one();
        }
    }

    /// Commits what waits without the usual pause of a second: for a job that is near its limit.
    pub fn flush(&self) {
        self.shared.lock().flush = true;
        self.shared.work.notify_one();
    }

    /// Hands over a closed window.
    pub fn window(&self, window: Window) {
        self.push(Item::Window(window));
    }

    /// Stacks of a window.
    pub fn stacks(&self, window: StackWindow) {
        self.push(Item::Stacks(window));
    }

    /// A row of `meta` that was not known at the start.
    pub fn note(&self, key: &'static str, value: String) {
        self.push(Item::Note(key, value));
    }

    pub fn event(&self, event: Event) {
        self.events(vec![event]);
    }

    /// Those of one tick.
    pub fn events(&self, events: Vec<Event>) {
        self.push(Item::Events(events));
    }

    fn push(&self, item: Item) {
        self.shared.lock().queue.push(item);
        self.shared.work.notify_one();
    }

    /// Where the record is, for who reads it: stays usable when the writer has ended.
    pub fn place(&self) -> Place {
        Place(self.shared.clone())
    }

    pub fn path(&self) -> Option<PathBuf> {
        self.place().file()
    }

    /// What went wrong last, in one line.
    pub fn problem(&self) -> Option<String> {
        self.shared.lock().problem.clone()
    }

    /// Writes the end, if it was seen, and closes the file; waits for `timeout` at most. A disk that has not answered by then may
    /// still get the rest while the process lives.
    pub fn finish(self, end: Option<End>, timeout: Duration) -> Finished {
        let deadline = Instant::now() + timeout;
        let mut state = self.shared.lock();
        end.into_iter().for_each(|end| state.queue.push(Item::End(end)));
        state.closing = Some(deadline);
        self.shared.work.notify_one();
        while !state.closed {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.shared.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let (mut dropped_ticks, mut dropped_items) = (state.queue.lost.ticks, state.queue.lost.others);
        let mut problem = state.problem.clone();
        if !state.closed {
            dropped_ticks += state.in_flight.ticks + state.queue.ticks() as u64;
            dropped_items += state.in_flight.others + state.queue.others() as u64;
            let silent = || format!("the record is not complete: the disk did not answer within {timeout:?}");
            problem = problem.or_else(|| Some(silent()));
        }
        let path = state.path.clone().filter(|path| !schema::is_memory(path));
        Finished { path, dropped_ticks, dropped_items, problem }
    }
}

/// Tells where a record is.
#[derive(Clone, Debug)]
pub struct Place(Arc<Shared>);

impl Place {
    /// For a `Reader`. `None` while no place is found.
    pub fn record(&self) -> Option<PathBuf> {
        self.0.lock().path.clone()
    }

    /// `None` also when the record is in memory.
    pub fn file(&self) -> Option<PathBuf> {
        self.record().filter(|path| !schema::is_memory(path))
    }
}

impl Drop for Writer {
    /// Without `finish` the thread still writes what waits, and nobody waits for it.
    fn drop(&mut self) {
        self.shared.lock().closing.get_or_insert(Instant::now() + COMMIT_EVERY);
        self.shared.work.notify_one();
    }
}

fn write_all(shared: &Shared, target: &Target, about: &About, first: impl FnOnce(&Path) -> Option<Event>) {
    match open(shared, target, about, first) {
        Ok(database) => Thread { shared, database, batch: Vec::new(), failures: 0, closing: false }.run(),
        Err(problem) => shared.lock().problem = Some(problem),
    }
    shared.lock().closed = true;
    shared.done.notify_all();
}

/// The first place that takes a database, else memory.
fn open(
    shared: &Shared,
    target: &Target,
    about: &About,
    first: impl FnOnce(&Path) -> Option<Event>,
) -> Result<Database, String> {
    // Without /proc no place is known to be local, and only one that was asked for is left.
    let mounts = Mounts::of_this_process();
    let (candidates, mut refused) = place::candidates(target, &mounts);
    for candidate in &candidates {
        let made = place::create(candidate, target).and_then(|path| {
            Database::create(&path, about).map(|database| (database, path.clone())).map_err(|error| {
                let _ = std::fs::remove_file(&path);
                format!("{}: {error}", path.display())
            })
        });
        match made {
            Ok((mut database, path)) => {
                if let Some(event) = first(&path) {
                    // One that can't be written now is no reason to do without a record.
                    let _ = database.commit(&[Item::Events(vec![event])], Lost::default());
                }
                shared.lock().path = Some(path);
                return Ok(database);
            }
            Err(why) => refused.push(why),
        }
    }
    let why = refused.join("; ");
    let memory = schema::memory();
    let database = Database::create(&memory, about);
    let mut state = shared.lock();
    state.path = database.is_ok().then_some(memory);
    state.problem =
        Some(format!("no place for a record on disk ({why}): kept in memory, one hour of it, until the end"));
    database.map_err(|error| format!("no record: {why}; in memory: {error}"))
}

struct Thread<'a> {
    shared: &'a Shared,
    database: Database,
    /// Taken from the queue, not yet committed.
    batch: Vec<Item>,
    failures: u32,
    /// The end has come.
    closing: bool,
}

impl Thread<'_> {
    fn run(mut self) {
        let mut due = Instant::now();
        loop {
            let closing = self.wait(due);
            due = Instant::now() + self.commit();
            if let Some(deadline) = closing {
                let all = self.batch.is_empty() && self.shared.lock().queue.is_empty();
                if all || Instant::now() >= deadline {
                    break;
                }
            }
        }
        self.discard();
        self.look_for_it();
        let in_memory = self.database.close();
        self.shared.lock().in_memory = in_memory;
    }

    /// Waits until something is to be committed: what is urgent now, ticks at `due`, a batch that failed at `due`.
    /// Returns the deadline when the end has come.
    fn wait(&mut self, due: Instant) -> Option<Instant> {
        let mut state = self.shared.lock();
        loop {
            let retry = !self.batch.is_empty();
            let urgent = state.flush || state.queue.has_urgent() || state.queue.ticks() >= TICKS / 2;
            let left = due.saturating_duration_since(Instant::now());
            let idle = !retry && state.queue.is_empty();
            // The end doesn't wait for a retry that is due later, but what fails then waits as usual.
            let end = state.closing.is_some() && (!retry || !self.closing);
            if end || urgent && !retry || left.is_zero() && !idle {
                break;
            }
            state = if idle {
                self.shared.work.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.shared.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            };
        }
        state.flush = false;
        self.closing = state.closing.is_some();
        state.closing
    }

    /// Commits the batch, a new one if there is none; returns how long to wait before the next.
    fn commit(&mut self) -> Duration {
        let mut state = self.shared.lock();
        if self.batch.is_empty() {
            state.take(&mut self.batch);
        }
        let lost = state.queue.lost;
        drop(state);
        match self.database.commit(&self.batch, lost) {
            Ok(()) => {
                self.failures = 0;
                let mut state = self.shared.lock();
                state.in_flight = Lost::default();
                state.queue.recycle(&mut self.batch);
                drop(state);
                self.thin();
                COMMIT_EVERY
            }
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &rusqlite::Error) -> Duration {
        self.failures += 1;
        let mut state = self.shared.lock();
        let place = state.path.as_ref().map_or_else(|| "memory".into(), |path| path.display().to_string());
        state.problem = Some(format!("the record in {place} has a gap: {error}"));
        drop(state);
        if !is_disk(error) && self.failures >= MAX_ODD_FAILURES {
            self.discard();
            return COMMIT_EVERY;
        }
        if self.closing {
            return CLOSING_RETRY;
        }
        FIRST_RETRY.saturating_mul(1 << (self.failures - 1).min(10)).min(LAST_RETRY)
    }

    /// SQLite goes on in a file that has lost its name, and nobody will find it.
    fn look_for_it(&self) {
        let path = self.shared.lock().path.clone();
        let gone = path.filter(|path| !schema::is_memory(path) && !path.exists());
        if let Some(path) = gone {
            let mut state = self.shared.lock();
            state.problem = Some(format!("the record {} was removed while the job ran", path.display()));
            state.path = None;
        }
    }

    /// Gives the batch up; at the end also what still waits.
    fn discard(&mut self) {
        let mut state = self.shared.lock();
        loop {
            let lost = std::mem::take(&mut state.in_flight);
            state.queue.lost.ticks += lost.ticks;
            state.queue.lost.others += lost.others;
            state.queue.recycle(&mut self.batch);
            if !self.closing || state.queue.is_empty() {
                break;
            }
            state.take(&mut self.batch);
        }
    }

    /// In short transactions, and only while nothing else is to be done.
    fn thin(&mut self) {
        while let Ok(true) = self.database.thin() {
            let state = self.shared.lock();
            if state.closing.is_some() || state.queue.has_urgent() || state.queue.ticks() >= TICKS / 2 {
                break;
            }
        }
    }
}

fn is_disk(error: &rusqlite::Error) -> bool {
    use ErrorCode::*;
    matches!(
        error.sqlite_error_code(),
        Some(
            DiskFull
                | ReadOnly
                | SystemIoFailure
                | DatabaseBusy
                | DatabaseLocked
                | CannotOpen
                | OutOfMemory
                | PermissionDenied
                | FileLockingProtocolFailed
        )
    )
}
