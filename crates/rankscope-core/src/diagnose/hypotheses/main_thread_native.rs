//! Native code without the GIL runs in the main thread while the GPU waits: a tokenizer, a codec, a library's kernel.

use super::super::facts::Facts;
use super::super::facts::doing::Doing;
use super::super::facts::rank::RankFacts;
use super::super::thresholds as t;
use super::case::Case;
use super::main_thread;

const NATIVE: &[Doing] = &[Doing::Native];
/// In which a thread may wait for the GPU while that works, or for anything else.
const ASLEEP: &[Doing] = &[
    Doing::NativeWait,
    Doing::GilWait,
    Doing::Data,
    Doing::Lock,
    Doing::Disk,
    Doing::Socket,
    Doing::Child,
    Doing::Sleep,
    Doing::Events,
];

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("main_thread_native", facts);
    let rank = facts.rank();
    let gil = facts.seen.stacks.samples.iter().any(|s| s.main && s.gil.is_some());
    // A wait for the GPU that spins is native code too, and no work: it lasts as long as the GPU works.
    let works = |r: &RankFacts| {
        r.share(NATIVE).map(|m| m.map(|native| r.beyond_the_gpus_work(native, r.doing.of(ASLEEP))))
    };
    let share = rank.and_then(works).filter(|_| gil);
    let runs = case.at_least("main_thread.runs_native_code_share", share, t::SECOND_SHARE);
    // Threads of a library are on a CPU in its stead.
    let itself = rank.filter(|r| r.handed != Some(Doing::Native));
    let on_cpu = itself.and_then(|r| r.on_cpu);
    let on_cpu = if on_cpu.is_some() {
        case.at_least("main_thread.on_cpu_share", on_cpu, t::SECOND_SHARE)
    } else {
        Some(true)
    };
    if main_thread::can_be_blamed(facts).is_none() {
        case.missing.push("gpu.utilization".into());
    }
    case.all(&[runs, on_cpu, main_thread::can_be_blamed(facts)]);
    case.explains(share.map_or(0.0, |m| m.value), facts);
    let asleep = rank.and_then(|r| r.active_workers()).filter(|w| w.busy().is_some_and(|b| b.value < 0.1));
    let asleep = asleep.map(|w| format!("; {} workers are asleep", w.members.len())).unwrap_or_default();
    case.reason =
        format!("{} in native code without the GIL{asleep}", main_thread::reason(facts, NATIVE, case.share));
    case.remedy(
        "do that work in the loader's workers, or once before the training",
        "it runs in the process that feeds the GPU",
    );
    case.remedy(
        "let the library use its threads, within the CPU limit (OMP_NUM_THREADS, TOKENIZERS_PARALLELISM, …)",
        "it uses one CPU",
    );
    case
}
