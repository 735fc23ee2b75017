//! The thread that delivers while the job runs. It reads the store and never meets the sampler; whatever fails here,
//! the job goes on and everything stays in the store.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use rankscope_core::ending::Ending;

use super::client::Client;
use super::delivery::{Delivery, Phase};
use super::lock::FolderLock;
use super::pace::Pace;
use super::pauses::{Again, Pauses};
use super::plan::Plan;
use super::settings::Settings;
use super::trouble::Trouble;
use crate::board::Board;
use crate::clock::{self, RunStart};
use crate::env_vars;
use crate::printer;
use crate::store::{Place, Reader};

const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// Between attempts once the job has ended.
const LAST_RETRY: Duration = Duration::from_millis(500);
/// From the end of the last request to our answer, which has to come before the deadline.
const TO_ANSWER: Duration = Duration::from_millis(200);
/// Of the store: the last commit may still be under way.
const SETTLE: Duration = Duration::from_millis(100);
/// Between two looks at the record for its first window.
const NO_WINDOW_YET: Duration = Duration::from_millis(500);
/// Between two deliveries of short windows, near a limit.
const HURRIED: Duration = Duration::from_secs(1);
const STACK: usize = 1 << 20;

pub struct Config {
    pub settings: Settings,
    /// `--tracking-uri`, for reading the settings again.
    pub tracking_uri: Option<String>,
    pub plan: Plan,
    pub place: Place,
    pub interval: Duration,
    pub pace: Pace,
    pub verbose: bool,
    pub run_start: RunStart,
}

pub struct Sink {
    place: Place,
    tell: Sender<Tell>,
    waker: Waker,
    done: Receiver<Outcome>,
    pace: Pace,
}

enum Tell {
    /// A short window is there.
    Window,
    Last(Last),
}

/// Has short windows delivered at once.
#[derive(Clone)]
pub struct Waker {
    tell: Sender<Tell>,
    /// Told, and not yet heard: a thread that waits for a server is told once.
    waiting: Arc<AtomicBool>,
}

impl Waker {
    pub fn wake(&self) {
        if !self.waiting.swap(true, Ordering::Relaxed) {
            let _ = self.tell.send(Tell::Window);
        }
    }
}

/// The end of the job, when our turn comes then, and until when everything has to be done.
struct Last {
    /// `None`: it goes on, only we don't.
    end: Option<Ending>,
    turn: Instant,
    deadline: Instant,
}

/// What became of the delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Where a browser shows the runs, oldest first.
    pub urls: Vec<String>,
    /// What the user has to know and to do, in one line.
    pub problem: Option<String>,
}

impl Sink {
    pub fn start(config: Config) -> std::io::Result<Sink> {
        let (tell, told) = mpsc::channel();
        let (answer, done) = mpsc::channel();
        let (place, pace) = (config.place.clone(), config.pace);
        let waker = Waker { tell: tell.clone(), waiting: Arc::default() };
        let waiting = waker.waiting.clone();
        std::thread::Builder::new().name("rankscope-mlflow".to_owned()).stack_size(STACK).spawn(
            move || {
                let outcome = Thread::new(config, waiting).run(&told);
                // Nobody listens any more when it came too late.
                let _ = answer.send(outcome);
            },
        )?;
        Ok(Sink { place, tell, waker, done, pace })
    }

    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Delivers what is left, then the status. Returns after `grace`, counted from our turn, at the latest.
    pub fn finish(self, end: Option<Ending>, ended: Instant, grace: Duration) -> Outcome {
        let turn = ended + self.pace.last_turn(grace);
        let deadline = turn + grace;
        let _ = self.tell.send(Tell::Last(Last { end, turn, deadline }));
        let left = deadline.saturating_duration_since(Instant::now());
        self.done.recv_timeout(left).unwrap_or_else(|_| {
            let path = self.place.file();
            let later =
                path.map(|path| format!("; `rankscope sync {}` delivers the rest", folder(&path).display()));
            let problem = format!("MLflow did not answer in time{}", later.unwrap_or_default());
            Outcome { urls: Vec::new(), problem: Some(problem) }
        })
    }
}

struct Thread {
    config: Config,
    delivery: Option<Delivery>,
    /// Until the delivery has it: others are to see from the start that we are here.
    board: Option<Board>,
    said: HashSet<String>,
    shown: bool,
    /// Held while we deliver, so that `sync` does not do the same at once.
    lock: Option<FolderLock>,
    started: Instant,
    waiting: Arc<AtomicBool>,
    /// How long the server is left alone after the last step, which it was slow to answer.
    rest_until: Instant,
    pauses: Pauses,
    again: Again,
    /// The server said no, so that trying the same again helps little.
    refused: bool,
}

impl Thread {
    fn new(config: Config, waiting: Arc<AtomicBool>) -> Thread {
        let rank = env_vars::Job::ours().place.rank;
        Thread {
            pauses: Pauses::new(config.pace.period()),
            board: config.plan.meeting.as_deref().and_then(|key| Board::join(key, rank)),
            config,
            delivery: None,
            said: HashSet::new(),
            shown: false,
            lock: None,
            started: Instant::now(),
            waiting,
            rest_until: Instant::now(),
            again: Again::At(Instant::now()),
            refused: false,
        }
    }

    fn run(mut self, told: &Receiver<Tell>) -> Outcome {
        let mut stepped = Instant::now();
        loop {
            let mut due = Instant::now() + self.until_next_attempt();
            let mut hurried = false;
            loop {
                match told.recv_timeout(due.saturating_duration_since(Instant::now())) {
                    Ok(Tell::Last(last)) => return self.last(&last),
                    Ok(Tell::Window) => {
                        self.waiting.store(false, Ordering::Relaxed);
                        let soon = (Instant::now() + SETTLE).max(stepped + self.hurried());
                        // A server in trouble is left alone.
                        if self.is_due() && !self.refused && soon < due {
                            (due, hurried) = (soon, true);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return Outcome::default(),
                    Err(RecvTimeoutError::Timeout) => break,
                }
            }
            let renewed = self.refused && self.renew();
            if !renewed && !self.is_due() {
                continue;
            }
            stepped = Instant::now();
            let pace = self.config.pace;
            let result = match &mut self.delivery {
                Some(delivery) if hurried => delivery.hurry(),
                _ => self.step(Phase::Running),
            };
            // Who has no run yet gets short answers, and finds it best before the others have filled it.
            if self.delivery.as_ref().is_some_and(|delivery| delivery.run_start_unix_ms().is_some()) {
                let all_have_met = self.started + self.until_first_window() + pace.all_have_met();
                self.rest_until = all_have_met.max(Instant::now() + pace.rest_after(stepped.elapsed()));
            }
            match result {
                Ok(()) => {
                    self.pauses.reset();
                    self.again = Again::At(Instant::now());
                    self.refused = false;
                }
                Err(trouble) => {
                    self.say_once(&trouble);
                    self.refused = !trouble.is_transient();
                    self.again = self.pauses.after(&trouble, Instant::now());
                }
            }
        }
    }

    fn is_due(&self) -> bool {
        matches!(self.again, Again::At(then) if then <= Instant::now())
    }

    /// After a refusal each window is a chance to see that something has changed.
    fn until_next_attempt(&self) -> Duration {
        let pause = match self.again {
            Again::At(then) if !self.refused => then.saturating_duration_since(Instant::now()),
            _ => Duration::ZERO,
        };
        let met = self.delivery.as_ref().is_some_and(|delivery| delivery.has_met);
        if let Some(first) = self.config.pace.first_turn().filter(|_| !met) {
            let first = self.started + self.until_first_window() + first;
            return pause.max(first.saturating_duration_since(Instant::now())).max(NO_WINDOW_YET);
        }
        match self.config.pace.is_shared() {
            true => {
                let rest = pause.max(self.rest_until.saturating_duration_since(Instant::now()));
                // The one that is just over is not the next.
                self.config.pace.until_turn(clock::unix_ms(), rest.max(SETTLE))
            }
            false => self.until_next_window().max(pause),
        }
    }

    /// Between two deliveries of short windows. All ranks of a job may come near their limits together.
    fn hurried(&self) -> Duration {
        HURRIED.max(self.config.pace.period() / 10)
    }

    /// Credentials in a file may have been replaced: takes them, if so.
    fn renew(&mut self) -> bool {
        let Ok(Some(settings)) = Settings::from_env(self.config.tracking_uri.as_deref()) else {
            return false;
        };
        if settings == self.config.settings {
            return false;
        }
        let Ok(client) = Client::new(&settings) else { return false };
        if let Some(delivery) = &mut self.delivery {
            delivery.client = client;
        }
        self.config.settings = settings;
        true
    }

    fn until_first_window(&self) -> Duration {
        self.config.pace.window() + self.config.interval + SETTLE
    }

    /// A window is there once the first sample of the next has come.
    fn until_next_window(&self) -> Duration {
        let window = self.config.pace.window().as_secs_f64().max(0.05);
        let late = (self.config.interval + SETTLE).as_secs_f64();
        let now = self.started.elapsed().as_secs_f64();
        let next = ((now - late) / window).floor() * window + window + late;
        Duration::from_secs_f64((next - now).max(0.01)).min(LONGEST_SLEEP)
    }

    /// Nothing happens while there is no record.
    fn open(&mut self) -> Result<(), Trouble> {
        if self.delivery.is_none() {
            let Some(path) = self.config.place.record() else { return Ok(()) };
            let client = Client::new(&self.config.settings)?;
            // One who delivers it at this moment may be about to make a run; what it has done is read afterwards.
            if let Some(file) = self.config.place.file() {
                self.lock = FolderLock::shared(&folder(&file)).map_err(|e| Trouble::Taken(e.to_string()))?;
            }
            let reader = Reader::open(&path).map_err(Trouble::Store)?;
            let mut delivery = Delivery::new(client, reader, self.config.plan.clone())?;
            delivery.election.board = self.board.take();
            delivery.crowded = self.config.pace.is_crowded();
            self.delivery = Some(delivery);
        }
        Ok(())
    }

    fn step(&mut self, phase: Phase) -> Result<(), Trouble> {
        self.open()?;
        let Some(delivery) = &mut self.delivery else { return Ok(()) };
        let result = delivery.step(phase);
        let remark = delivery.remark.take();
        if let Some(unix_ms) = delivery.run_start_unix_ms() {
            self.config.run_start.set(unix_ms);
        }
        if let Some(url) = delivery.urls().last().filter(|_| self.config.verbose && !self.shown) {
            printer::say(&format!("metrics go to {url}"));
            self.shown = true;
        }
        // Of a record that can't be written its writer tells at the end.
        if let Some(remark) = remark.filter(|remark| !matches!(remark, Trouble::NotNoted(_))) {
            self.say_once(&remark);
        }
        result
    }

    fn last(mut self, last: &Last) -> Outcome {
        self.renew();
        self.wait_for_last_turn(last);
        let problem = loop {
            let left = last.deadline.saturating_duration_since(Instant::now());
            if let Some(delivery) = &mut self.delivery {
                delivery.client.set_timeout(left.max(LAST_RETRY).min(self.config.settings.timeout));
            }
            let until = last.deadline.checked_sub(TO_ANSWER);
            let result = self.step(Phase::Over(last.end.as_ref())).and_then(|()| match &mut self.delivery {
                Some(delivery) => delivery.training_step(until),
                None => Ok(()),
            });
            let waits_for_rank_0 = self.delivery.as_ref().is_some_and(|d| d.urls().is_empty());
            let shortest = self.config.pace.last_retry(LAST_RETRY, left);
            let pause = match &result {
                Ok(()) if !waits_for_rank_0 => break None,
                Ok(()) => shortest,
                Err(trouble) => trouble.retry_after().unwrap_or_default().max(shortest),
            };
            let time_left = left > pause + LAST_RETRY;
            match result {
                Ok(()) if !time_left => break None,
                Ok(()) => {}
                Err(trouble) if !(trouble.is_transient() && time_left) => break Some(trouble),
                Err(trouble) => self.say_once(&trouble),
            }
            std::thread::sleep(pause.mul_f64(1.0 + fastrand::f64() / 10.0));
        };
        let in_order = problem.is_none();
        if let (Some(delivery), Some(until)) = (&mut self.delivery, last.deadline.checked_sub(TO_ANSWER))
            && in_order
            && last.end.is_some()
            && let Some(words) = delivery.report(last.end.as_ref(), until)
        {
            printer::say(&words);
        }
        let urls = self.delivery.as_ref().map(Delivery::urls).unwrap_or_default();
        let path = self.config.place.file();
        let problem = match (problem, &path) {
            (Some(trouble), Some(path)) => Some(self.rest(&trouble, path)),
            (Some(trouble), None) => Some(format!("not everything reached MLflow: {trouble}")),
            (None, _) if self.delivery.is_none() => {
                Some("nothing reached MLflow: there is no record".to_owned())
            }
            (None, _) if urls.is_empty() => Some(
                "nothing reached MLflow: rank 0 has no run yet; `rankscope sync` can deliver it later"
                    .to_owned(),
            ),
            (None, _) => self.delivery.as_ref().and_then(|d| d.refused.words()),
        };
        self.board.into_iter().for_each(Board::leave);
        if let Some(delivery) = self.delivery {
            delivery.close();
        }
        Outcome { urls, problem }
    }

    /// All ranks of a job most often end together.
    fn wait_for_last_turn(&mut self, last: &Last) {
        if !self.config.pace.is_shared() {
            return;
        }
        // The others look for the run that rank 0 makes. What fails is tried again below.
        let _ = self.open();
        if let Some(delivery) = self.delivery.as_mut().filter(|delivery| delivery.urls().is_empty()) {
            let _ = delivery.prepare_end(last.end.as_ref());
        }
        std::thread::sleep(last.turn.saturating_duration_since(Instant::now()));
    }

    fn rest(&self, trouble: &Trouble, path: &Path) -> String {
        let why = match self.said.contains(&trouble.cause()) {
            true => String::new(),
            false => format!(" ({trouble})"),
        };
        format!(
            "not everything reached MLflow{why}; `rankscope sync {}` delivers the rest",
            folder(path).display()
        )
    }

    fn say_once(&mut self, trouble: &Trouble) {
        if self.said.insert(trouble.cause()) {
            printer::say(&format!(
                "MLflow: {trouble}; the job goes on, what is measured stays in the record"
            ));
        }
    }
}

fn folder(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}
