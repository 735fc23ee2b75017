use super::super::observations::{GpuProcess, Mark};
use super::*;

const GRID: Grid = Grid { slots: 300, seconds: 0.2 };

fn gpu(at: impl Fn(usize) -> (f32, f32)) -> Gpu {
    let (utilization, power) = (0..GRID.slots).map(at).map(|(u, p)| (Some(u), Some(p))).unzip();
    Gpu {
        label: "0".into(),
        power_limit: Some(700.0),
        utilization,
        power,
        processes_known: true,
        ..Gpu::default()
    }
}

fn kinds(time: &GpuTime) -> Vec<(&'static str, f64)> {
    time.phases.iter().map(|p| (p.kind, ((p.end_s - p.start_s) * 10.0).round() / 10.0)).collect()
}

#[test]
fn noise_around_the_cut_is_one_phase() {
    let time = of_gpu(&gpu(|s| (if s % 2 == 0 { 8.0 } else { 12.0 }, 80.0)), GRID, false);
    assert_eq!(time.phases.len(), 1, "{:?}", kinds(&time));
    // A moment of less is none either.
    let time = of_gpu(&gpu(|s| if s % 50 == 7 { (0.0, 500.0) } else { (97.0, 600.0) }), GRID, false);
    assert_eq!(kinds(&time), [(BUSY, 60.0)]);
    assert!((time.usage.lost.unwrap_or(0.0) - 0.049).abs() < 0.01, "but it counts as lost");
}

#[test]
fn a_desktop_is_no_work() {
    let mut desktop = gpu(|s| match s {
        s if s % 40 == 11 => (92.0, 28.0),
        s if s % 40 == 23 => (72.0, 28.0),
        s => (3.0 + (s % 2) as f32, 26.0),
    });
    desktop.power_limit = Some(350.0);
    desktop.processes = vec![GpuProcess { pid: 1, graphics: true, ..GpuProcess::default() }];
    let time = of_gpu(&desktop, GRID, false);
    assert_eq!(kinds(&time), [(IDLE, 60.0)]);
    assert!(time.usage.lost.is_some_and(|lost| lost > 0.98), "{:?}", time.usage);
}

#[test]
fn a_wait_in_a_collective_needs_others_and_its_own_low_power() {
    let waits = |low: f32| gpu(move |s| if s % 50 < 30 { (99.0, 640.0) } else { (100.0, low) });
    let time = of_gpu(&waits(120.0), GRID, true);
    assert!((time.usage.collective_wait - 0.4).abs() < 0.01, "{:?}", time.usage);
    assert_eq!(of_gpu(&waits(120.0), GRID, false).usage.collective_wait, 0.0);
    assert!(of_gpu(&waits(120.0), GRID, false).usage.low_power > 0.35);
    assert_eq!(of_gpu(&waits(380.0), GRID, true).usage.busy, 1.0, "bound by memory, not waiting");
    let mut by_memory = waits(200.0);
    by_memory.memory_controller = vec![Some(80.0); GRID.slots];
    assert_eq!(of_gpu(&by_memory, GRID, true).usage.busy, 1.0);
}

#[test]
fn missing_readings_are_neither_idle_nor_busy() {
    let mut gap = gpu(|_| (97.0, 600.0));
    for slot in 100..200 {
        (gap.utilization[slot], gap.power[slot]) = (None, None);
    }
    let time = of_gpu(&gap, GRID, false);
    assert_eq!(kinds(&time), [(BUSY, 20.0), (UNKNOWN, 20.0), (BUSY, 20.0)]);
    assert!(time.usage.lost.is_some_and(|lost| lost < 0.04));
    let mut flat = gpu(|_| (0.0, 18.0));
    flat.utilization.clear();
    let time = of_gpu(&flat, GRID, false);
    assert_eq!((kinds(&time), time.usage.lost), (vec![(UNKNOWN, 60.0)], None));
    assert_eq!(time.missing, ["0: no utilisation: idle cannot be told"]);
}

#[test]
fn a_period_is_told_only_where_there_is_one() {
    let every = of_gpu(&gpu(|s| if s % 35 < 5 { (98.0, 600.0) } else { (0.0, 75.0) }), GRID, false);
    assert_eq!(every.usage.period_s.map(|s| (s * 10.0).round()), Some(70.0));
    let steps = of_gpu(&gpu(|s| if s % 6 < 3 { (98.0, 600.0) } else { (0.0, 75.0) }), GRID, false);
    assert_eq!(steps.usage.period_s.map(|s| (s * 10.0).round()), Some(12.0));
    let starts = [20, 31, 90, 110, 117, 190, 260];
    let uneven = of_gpu(
        &gpu(|s| if starts.iter().any(|&b| (b..b + 6).contains(&s)) { (0.0, 75.0) } else { (98.0, 600.0) }),
        GRID,
        false,
    );
    assert_eq!(uneven.usage.period_s, None);
    assert_eq!(of_gpu(&gpu(|_| (97.0, 600.0)), GRID, false).usage.period_s, None);
}

/// Training, and a validation of 3 s at the end of each epoch; epochs of 7 to 14 s, marked at `mark` after the start.
fn epochs(mark: f64) -> (GpuTime, Vec<Mark>) {
    let begins = [0.0, 8.0, 20.0, 27.0, 41.0, 50.0];
    let idle = |s: f64| begins.iter().any(|begin| (begin - 3.0..*begin).contains(&s));
    let time = of_gpu(&gpu(|s| if idle(s as f64 * 0.2) { (0.0, 80.0) } else { (97.0, 600.0) }), GRID, false);
    let marks = begins.iter().enumerate().map(|(epoch, begin)| Mark {
        at_s: begin + mark,
        epoch: Some(epoch as i64),
        ..Mark::default()
    });
    (time, marks.collect())
}

#[test]
fn idle_phases_that_come_with_the_epochs() {
    // Marked at the first step, right at the validation's begin, and in the middle of the training.
    for mark in [0.1, -3.05, -2.95, 3.0] {
        let (mut time, marks) = epochs(mark);
        assert_eq!(time.usage.period_s, None, "they are uneven");
        time.compare_with_epochs(marks.iter(), GRID);
        assert!(time.usage.every_epoch, "{mark}: {:?}", kinds(&time));
        assert!(time.usage.period_s.is_some_and(|s| (s - 10.5).abs() < 0.1), "{:?}", time.usage);
    }
}

#[test]
fn idle_phases_that_come_otherwise() {
    let (mut time, marks) = epochs(0.1);
    let mut other = |marks: &mut dyn Iterator<Item = Mark>| {
        let marks: Vec<Mark> = marks.collect();
        time.compare_with_epochs(marks.iter(), GRID);
        (time.usage.every_epoch, time.usage.period_s)
    };
    assert_eq!(other(&mut marks.iter().take(3).cloned()), (false, None), "too few");
    // Of every second epoch only.
    let longer = |mark: &Mark| Mark { epoch: mark.epoch.map(|e| e / 2), ..mark.clone() };
    assert_eq!(other(&mut marks.iter().map(longer)), (false, None), "too few");
    let shorter = (0..60).map(|s| Mark { at_s: s as f64, epoch: Some(s), ..Mark::default() });
    assert_eq!(other(&mut shorter.into_iter()), (false, None), "most epochs have none");
    assert_eq!(other(&mut marks.iter().map(|m| Mark { epoch: None, ..m.clone() })), (false, None));
}
