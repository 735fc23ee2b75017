//! Kernels are compiled while the GPU waits: a compiler runs, or a cache of compiled code is written, in the window.
//! How big or how old a cache is says nothing.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::frames;
use super::super::facts::stacks::Sampled;
use super::super::series::{Measure, at, average};
use super::super::thresholds as t;
use super::case::{Case, either, percent};

const ON_CPU: &[Doing] = &[Doing::Native, Doing::OnCpu, Doing::Python];

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("jit_compile", facts);
    let compilers = facts.machine.compilers;
    let known = !facts.seen.processes.is_empty();
    let by_process = case.at_least("compilers.alive_share", known.then_some(compilers), t::COMPILING);
    let written: u32 = facts.seen.caches.iter().map(|c| c.written_in_window).sum();
    let looked = !facts.seen.caches.is_empty();
    let written =
        looked.then_some(Measure { value: f64::from(written), samples: facts.seen.caches.len() as u64 });
    let wrote = case.at_least("caches.files_written_in_the_window", written, 1.0);
    let until = until_last_write(facts);
    let by_cache = match wrote {
        Some(true) => {
            case.at_least("main_thread.on_cpu_until_the_last_cache_write_share", until, t::COMPILING)
        }
        other => other,
    };
    let inside = inside_compiler(facts);
    let by_frames = inside
        .filter(|m| m.value > 0.0)
        .and_then(|m| case.at_least("main_thread.in_the_drivers_compiler_share", Some(m), t::COMPILING));
    let found = by_frames == Some(true) || by_process == Some(true) || by_cache == Some(true);
    // A cache that cannot be written leaves no trace; then only the driver's own frames can tell.
    let blind = facts.seen.caches.iter().any(|c| c.disabled || c.writable == Some(false)) && inside.is_none();
    if blind && !found {
        case.missing
            .push("native frames (the cache is off or not writable, so compiling leaves no trace)".into());
    }
    case.all(&[if found {
        Some(true)
    } else if blind {
        None
    } else {
        either(by_process, by_cache)
    }]);
    let of_cache = if wrote == Some(true) { until.map_or(0.0, |m| m.value) } else { 0.0 };
    case.explains(compilers.value.max(of_cache).max(inside.map_or(0.0, |m| m.value)), facts);
    let names = facts.machine.compiler_names.join(", ");
    case.reason = if found {
        let by = if by_process == Some(true) { format!(" (by {names})") } else { String::new() };
        format!(
            "kernels were compiled{by} in {} of that time ({:.0} s){}",
            percent(case.share),
            facts.seconds(case.share),
            why_again(facts)
        )
    } else {
        newest(facts)
    };
    remedies(&mut case, facts);
    case
}

/// Lost time in which the main thread was on a CPU before the last write to a cache, as far as it was more so than after
/// it: what goes on as before was no compiling.
fn until_last_write(facts: &Facts) -> Option<Measure> {
    let rank = facts.rank()?;
    let writes =
        facts.seen.caches.iter().filter(|c| c.written_in_window > 0).filter_map(|c| c.newest_write_s);
    let last = writes.filter(|s| s.is_finite()).reduce(f64::max)?;
    // The write itself is in the slot in which compiling ends.
    let split = ((last / facts.grid.seconds).max(0.0) as usize + 1).min(facts.grid.slots);
    let on_cpu: Vec<(usize, f64)> = if rank.doing.by_stacks {
        // An iterator that makes its next element prepares data.
        let compiles = |s: &Sampled| ON_CPU.contains(&s.doing) && !s.iterates;
        let ran = |s: &Sampled| if compiles(s) { 1.0 } else { 0.0 };
        rank.sampled.iter().map(|s| (s.slot, s.factor * ran(s))).collect()
    } else {
        let main = rank.main?;
        let share = |slot| Some((slot, at(&main.on_cpu, slot)?.clamp(0.0, 1.0)));
        (0..facts.grid.slots).filter_map(share).collect()
    };
    // Cores lost to it, on average, before and after.
    let cores = |slots: std::ops::Range<usize>| {
        average(
            on_cpu
                .iter()
                .filter(|(slot, _)| slots.contains(slot))
                .map(|&(slot, ran)| (1.0, ran * rank.weight[slot])),
        )
    };
    let before = cores(0..split)?;
    let after = cores(split..facts.grid.slots).map_or(0.0, |m| m.value);
    let lost: f64 = rank.weight.iter().sum();
    let more = (before.value - after).max(0.0) * split as f64 / lost;
    (lost > 0.0).then_some(Measure { value: more.min(1.0), samples: before.samples })
}

/// `None`: no native frames are seen at all, so that their absence says nothing.
fn inside_compiler(facts: &Facts) -> Option<Measure> {
    let rank = facts.rank()?;
    let native = rank.sampled.iter().any(|s| s.frames.iter().any(|f| f.file.contains(".so")));
    let inside = |s: &Sampled| if frames::compiles(&s.frames) { 1.0 } else { 0.0 };
    average(rank.sampled.iter().map(|s| (s.counts(&rank.weight), inside(s)))).filter(|_| native)
}

fn at_its_limit(cache: &crate::diagnose::observations::Cache) -> bool {
    cache.size.zip(cache.size_limit).is_some_and(|(size, limit)| limit > 0.0 && size >= 0.95 * limit)
}

fn why_again(facts: &Facts) -> String {
    for cache in &facts.seen.caches {
        let kind = &cache.kind;
        if cache.disabled {
            return format!("; the {kind} cache is disabled, so that every start compiles again");
        }
        if cache.writable == Some(false) {
            return format!("; the {kind} cache is not writable, so that every start compiles again");
        }
        if at_its_limit(cache) {
            return format!("; the {kind} cache is at its size limit, so that old code is dropped for new");
        }
    }
    String::new()
}

/// The newest write that was before the window.
fn newest(facts: &Facts) -> String {
    let writes = facts.seen.caches.iter().filter_map(|c| c.newest_write_s).filter(|s| s.is_finite());
    match writes.reduce(f64::max) {
        Some(s) if s <= 0.0 => format!("newest cache write {} before", super::super::words::duration(-s)),
        Some(_) => "a cache was written, but little time went by with it".into(),
        None if facts.seen.caches.is_empty() => "the caches could not be looked at".into(),
        None => "no cache was written, no compiler ran".into(),
    }
}

fn remedies(case: &mut Case, facts: &Facts) {
    let caches = &facts.seen.caches;
    if caches.iter().any(|c| c.disabled) {
        case.remedy(
            "take CUDA_CACHE_DISABLE (or the framework's own switch) out of the environment",
            "every start compiles again",
        );
    }
    if caches.iter().any(|c| c.writable == Some(false)) {
        case.remedy(
            "a HOME, or CUDA_CACHE_PATH / TRITON_CACHE_DIR, that the job can write to",
            "what was compiled is lost",
        );
    }
    if caches.iter().any(at_its_limit) {
        case.remedy("a larger CUDA_CACHE_MAXSIZE (up to 4294967296)", "the cache is full and forgets");
    }
    case.remedy("keep the compile caches on a volume that outlives the container (CUDA_CACHE_PATH, TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR)", "the next start finds what this one compiled");
    case.remedy("a build that has code for this GPU's architecture; constant shapes, or dynamic=True, under torch.compile", "there is nothing to compile, or only once");
}
