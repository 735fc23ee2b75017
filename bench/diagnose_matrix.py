"""Which cause `rankscope diagnose` names for programs that really have one: `make bench-diagnose`.

Each target of tests/targets/ is run with each seed; prints how often each answer came, as Markdown, and every miss
with the sentence that was said.
"""

import argparse
import collections
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

from blind import table as blind
from fresh import table as fresh
from heldout import table as heldout
from kinds import table as kinds
from targets import table as induced
from targets.place import Place

SUITES = {"targets": induced, "heldout": heldout, "kinds": kinds, "blind": blind, "fresh": fresh}


@dataclass
class Result:
    target: str
    seed: int
    cause: str
    answer: str
    summary: str
    truth: dict
    diagnosis: dict

    @property
    def right(self):
        return self.answer == self.cause

    def found(self):
        """What it says beside the verdict."""
        said = [h for h in self.diagnosis.get("hypotheses", []) if h["status"] in ("kept", "secondary")]
        return [h["cause"] for h in said if h["cause"] != self.answer]


def run(target, seed, options):
    with Place(target, seed, options.library) as place:
        pid = place.start(seconds=1000)
        command = [options.rankscope, "diagnose", "--pid", pid, "--duration", options.duration, "--json"]
        if options.no_gpu:
            command.append("--no-gpu")
        if options.observations:
            options.observations.mkdir(parents=True, exist_ok=True)
            command += ["--observations", options.observations / f"{target.name}-{seed}.json"]
        done = place.look(command, timeout=options.duration + 120)
        place.end()
        truth = place.truth()
    try:
        diagnosis = json.loads(done.stdout)
        answer, summary = diagnosis["verdict"]["cause"], diagnosis["verdict"]["summary"]
    except (ValueError, KeyError):
        diagnosis, answer = {}, f"exit code {done.returncode}"
        summary = done.stderr.strip()[-300:]
    result = Result(target.name, seed, target.cause, answer, summary, truth, diagnosis)
    print(f"{'' if result.right else 'MISS '}{target.name} {seed}: {answer}", file=sys.stderr, flush=True)
    return result


# A healthy run, or one whose cause was taken away, loses less.
HEALTHY_LOSS = 0.1


def check_truth(targets, options):
    """Each program alone: has it the cause by its own clock, and not without it? Prints those that don't hold."""
    wrong = 0
    for target in targets:
        for seed in options.seeds:
            loss = alone(target, seed, options)
            least, most = (0, HEALTHY_LOSS) if target.cause == "healthy" else (target.least, 1)
            without = target.without()
            rest = alone(without, seed, options) if without else None
            holds = least <= loss <= most and (rest is None or rest <= HEALTHY_LOSS)
            wrong += not holds
            words = "" if rest is None else f", without its cause {100 * rest:.0f} %"
            print(
                f"{'' if holds else 'WRONG '}{target.name} {seed}: loses {100 * loss:.0f} %{words}",
                flush=True,
            )
    return wrong


def alone(target, seed, options):
    with Place(target, seed, options.library) as place:
        place.start(options.duration)
        return place.truth()["lost_share"]


def run_all(targets, options):
    """Two at a time where both leave a CPU to the other."""
    light = [(t, seed) for t in targets if t.light for seed in options.seeds]
    heavy = [(t, seed) for t in targets if not t.light for seed in options.seeds]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda each: run(*each, options), light))
    results += [run(target, seed, options) for target, seed in heavy]
    order = {target.name: n for n, target in enumerate(targets)}
    return sorted(results, key=lambda r: (order[r.target], r.seed))


def matrix(title, targets, results):
    """Each row of the confusion matrix, with the columns that aren't zero."""
    names = [t.name for t in targets]
    some = [r for r in results if r.target in names]
    if not some:
        return ""
    right = sum(r.right for r in some)
    lines = [
        f"### {title}: {right} of {len(some)} right",
        "",
        "| program | true cause | cost by its own clock | right | other answers | beside it |",
        "|---|---|---|---|---|---|",
    ]
    for name in names:
        own = [r for r in some if r.target == name]
        if not own:
            continue
        others = collections.Counter(r.answer for r in own if not r.right)
        beside = collections.Counter(cause for r in own for cause in r.found())
        costs = [r.truth["lost_share"] for r in own]
        lines.append(
            f"| {name} | {own[0].cause} | {100 * min(costs):.0f}–{100 * max(costs):.0f} % "
            f"| {sum(r.right for r in own)}/{len(own)} | {counted(others)} | {counted(beside)} |"
        )
    return "\n".join([*lines, ""])


def counted(counter):
    return ", ".join(f"{name} ×{n}" for name, n in counter.most_common()) or "–"


def misses(results):
    """Each with what was said, and what was said of the true cause."""
    lines = []
    for r in results:
        if r.right:
            continue
        lines += [f"### {r.target}, seed {r.seed}: {r.answer} instead of {r.cause}", "", f"> {r.summary}", ""]
        for h in r.diagnosis.get("hypotheses", []):
            if h["cause"] in (r.cause, r.answer) or h["status"] in ("kept", "secondary"):
                evidence = "; ".join(
                    f"{e['metric']} {e['value']} (threshold {e.get('threshold')})" for e in h["evidence"]
                )
                lines.append(f"- {h['cause']}: {h['status']}: {evidence}; missing: {h['missing']}")
        lines += [f"- truth: `{json.dumps({k: v for k, v in r.truth.items() if k != 'ranks'})}`", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    built = REPO / "target" / "release"
    parser.add_argument("--rankscope", default=str(built / "rankscope"))
    parser.add_argument("--library", default=str(built / "libfake_nvml.so"))
    parser.add_argument("--duration", type=int, default=15)
    parser.add_argument("--seeds", type=lambda text: [int(n) for n in text.split(",")], default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time, of those that are light")
    parser.add_argument("--only", type=lambda text: text.split(","), help="names of targets")
    parser.add_argument(
        "--no-gpu", action="store_true", help="without the faked GPU: the kernel's word alone"
    )
    parser.add_argument("--truth", action="store_true", help="checks the targets alone, without rankscope")
    parser.add_argument("--observations", type=Path, help="a folder for what was observed")
    parser.add_argument("--results", type=Path, help="writes everything there, as lines of JSON")
    parser.add_argument("--suite", choices=SUITES, default="targets", help="which table of programs")
    options = parser.parse_args()
    suite = SUITES[options.suite]
    targets = [suite.BY_NAME[name] for name in options.only] if options.only else suite.ALL
    if options.truth:
        sys.exit(check_truth(targets, options) > 0)
    results = run_all(targets, options)
    if options.results:
        options.results.write_text("".join(json.dumps(asdict(r)) + "\n" for r in results))
    print(matrix("One cause", suite.CAUSES, results))
    print(matrix("Healthy", suite.HEALTHY, results))
    print(matrix("Two causes, and the seed's story", suite.MIXES, results))
    print(misses(results))
    accused = [r for r in results if r.cause == "healthy" and not r.right and r.answer != "cannot_tell"]
    print(f"{len(accused)} of the healthy runs accused.")


if __name__ == "__main__":
    main()
