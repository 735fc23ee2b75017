//! How often stacks are read: as often as the budget of CPU time allows.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Readings a second at most, of each main process and of each worker.
    pub main_hz: f64,
    pub worker_hz: f64,
    /// Of one core, for all processes together, attaching included.
    pub budget: f64,
    /// Also the function of a library that a main thread is in.
    pub native: bool,
}

impl Pace {
    /// For a window of a minute.
    pub const DIAGNOSE: Pace = Pace { main_hz: 20.0, worker_hz: 2.0, budget: 0.02, native: true };
    /// All through a run.
    pub const RUN: Pace = Pace { main_hz: 2.0, worker_hz: 0.2, budget: 0.005, native: false };

    /// Readings a second of (each main process, each worker) for `share` of a core, when one reading of all main
    /// processes costs `main` CPU seconds and one of all workers `workers`. Workers never get more than main processes.
    pub fn rates(&self, share: f64, main: f64, workers: f64) -> (f64, f64) {
        let for_main = |spent: f64| if main > 0.0 { (share - spent) / main } else { self.main_hz };
        let beside_workers = for_main(self.worker_hz * workers);
        if beside_workers >= self.worker_hz {
            let worker_hz = match workers > 0.0 {
                true => self.worker_hz.min(share / workers),
                false => self.worker_hz,
            };
            return (self.main_hz.min(beside_workers), worker_hz);
        }
        let all = share / (main + workers);
        (self.main_hz.min(all), self.worker_hz.min(all))
    }
}

/// Until the next reading: random, so that it can't keep step with what the program does periodically.
pub fn pause(hz: f64) -> Duration {
    Duration::try_from_secs_f64((0.5 + fastrand::f64()) / hz).unwrap_or(Duration::from_secs(3600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_often_as_asked_when_it_is_cheap() {
        assert_eq!(Pace::DIAGNOSE.rates(0.02, 100e-6, 100e-6), (20.0, 2.0));
        assert_eq!(Pace::DIAGNOSE.rates(0.02, 0.0, 0.0), (20.0, 2.0));
    }

    #[test]
    fn never_beyond_what_is_left() {
        for share in [0.0, 1e-4, 0.005, 0.02] {
            for main in [0.0, 1e-4, 2e-3, 2e-2, 0.5] {
                for workers in [0.0, 1e-4, 5e-3, 2e-2, 0.5] {
                    let (main_hz, worker_hz) = Pace::DIAGNOSE.rates(share, main, workers);
                    let costs = main_hz * main + worker_hz * workers;
                    assert!(costs <= share + 1e-9, "{share} {main} {workers}");
                    assert!(share == 0.0 || main_hz > 0.0 && worker_hz > 0.0);
                    assert!(main_hz >= worker_hz || main == 0.0);
                }
            }
        }
    }

    #[test]
    fn main_processes_get_what_workers_leave() {
        let (main_hz, worker_hz) = Pace::DIAGNOSE.rates(0.02, 2e-3, 1e-3);
        assert_eq!(worker_hz, 2.0);
        assert!((main_hz - 9.0).abs() < 1e-9);
    }

    #[test]
    fn pauses_vary_around_the_period() {
        let pauses: Vec<f64> = (0..2000).map(|_| pause(10.0).as_secs_f64()).collect();
        let mean = pauses.iter().sum::<f64>() / 2000.0;
        assert!((mean - 0.1).abs() < 0.01);
        assert!(pauses.iter().all(|p| (0.05..0.15).contains(p)));
    }
}
