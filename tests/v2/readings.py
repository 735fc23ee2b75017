"""What the kernel's files said before and after a sample, and what a value may then be."""

import itertools

from support.bounds import MB, Between, Bounds, rounds
from support.cli import by_name, samples

MIB = 1 << 20
SLICES = "/kubepods.slice/kubepods-burstable.slice"
# Readings have a time in steps of 10 ms, samples one in whole milliseconds.
CLOCK_MS = 11
# What the quickest of several samples takes, on a busy machine.
QUICK_MS = 60


def pod(number):
    return f"{SLICES}/kubepods-burstable-pod6f1c9c1e_0000_4000_8000_{number:012}.slice"


def leaf(number, name):
    return f"{pod(number)}/cri-containerd-{name}.scope"


def readings(folder, *names):
    return [r for name in names for r in rounds((folder / name).read_text())]


def between(folder, before, after):
    return Between(readings(folder, before), readings(folder, after))


def one(folder, name):
    (sample,) = samples((folder / name).read_text())
    return sample


def values(sample):
    return {name: row["value"] for name, row in by_name(sample).items()}


def memory(around, limit=None):
    """Bounds for what one reading gives; `limit` is one of the own level."""
    working_set = around.difference("memory.usage", "memory.inactive_file")
    expected = {
        "container_memory_usage_megabytes": around.get("memory.usage").scaled(MB),
        "container_memory_working_set_megabytes": working_set.scaled(MB),
        "container_memory_anon_megabytes": around.get("memory.rss").scaled(MB),
        "container_memory_file_megabytes": around.get("memory.cache").scaled(MB),
        "container_memory_shmem_megabytes": around.get("memory.shmem").scaled(MB),
        "container_memory_swap_megabytes": around.get("memory.swap").scaled(MB),
        "container_cpu_throttled_seconds": around.get("cpu.throttled_time").scaled(1e9),
        "container_io_read_megabytes": around.get("io.read").scaled(MB),
        "container_io_write_megabytes": around.get("io.write").scaled(MB),
        "container_pids": around.get("pids"),
    }
    # Linux 5.18 and 5.19.
    for name in ("kernel", "peak"):
        if f"memory.{name}" in around.readings[0]:
            expected[f"container_memory_{name}_megabytes"] = around.get(f"memory.{name}").scaled(MB)
    return expected | (around.relative_to(limit) if limit else {})


class Samples:
    """Samples that were taken each `interval_s`, on the clock of the readings."""

    def __init__(self, folder, name, interval_s):
        self.all = samples((folder / name).read_text())
        wall, uptime = (float(n) for n in (folder / "clock").read_text().split())
        # A sample's time is that of its end. None begins before it is due, and the quickest tells when that was.
        self.ends = [s["time_unix_ms"] - (wall - uptime) * 1000 for s in self.all]
        dues = [at * interval_s * 1000 for at in range(len(self.all))]
        first = min(end - due for end, due in zip(self.ends, dues, strict=True)) - QUICK_MS
        self.begins = [first + due for due in dues]

    def around(self, series):
        """Each sample with the readings on either side."""
        for sample, begin, end in zip(self.all, self.begins, self.ends, strict=True):
            before = [r for r in series if r["end_ms"] <= begin - CLOCK_MS]
            after = [r for r in series if r["start_ms"] >= end + CLOCK_MS]
            yield sample, Between(before[-1:], after[:1])

    def pairs(self, series):
        """Two samples in a row, the readings around them, and bounds for the seconds between two of one file."""
        times = [
            Bounds(max(1, later - end) / 1000, (later_end - begin) / 1000)
            for (begin, end), (later, later_end) in itertools.pairwise(
                zip(self.begins, self.ends, strict=True)
            )
        ]
        around = itertools.pairwise(self.around(series))
        return [(a, b, sample, seconds) for ((_, a), (sample, b)), seconds in zip(around, times, strict=True)]


def share(first, second, part, whole):
    """Bounds for the growth of one counter relative to that of another, in percent."""
    a, b = growth(first, second, part), growth(first, second, whole)
    return Bounds(100 * a.low / b.high if b.high else 0, min(100, 100 * a.high / b.low) if b.low else 100)


def growth(first, second, name):
    a, b = first.get(name), second.get(name)
    return Bounds(max(0, b.low - a.high), b.high - a.low)


def rate(first, second, name, unit, seconds):
    grown = growth(first, second, name)
    return Bounds(grown.low / unit / seconds.high, grown.high / unit / seconds.low)


def ticks(store, series):
    """(milliseconds since boot, value) of each sample that has it."""
    query = "SELECT boottime_ns / 1e6, value FROM v_tick WHERE series = ? ORDER BY tick_id"
    return [tuple(row) for row in store.connection.execute(query, (series,))]


def settled(moments, since):
    """Of (time, value), those that began after a moment: the first one after it may have been on its way."""
    return [(at, value) for at, value in moments if at > since][1:]


def events(folder):
    """name → (not before, not after), in milliseconds since boot."""
    lines = (line.split() for line in (folder / "events").read_text().splitlines())
    return {name: (float(begin) * 1000, float(end) * 1000 + CLOCK_MS) for name, begin, end in lines}
