"""What a value must lie between, computed from readings of the kernel's files before and after it.

Takes the output of `kernel.sh` and knows each series' formula; shares no code with rankscope.
"""

import math
import os
from dataclasses import dataclass

MB = 1e6
PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")


def rounds(text):
    """The rounds of `kernel.sh`, each a dict of name → number."""
    found = []
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "start_ms":
            found.append({})
        found[-1][name] = int(value)
    return [r for r in found if "end_ms" in r]


@dataclass
class Bounds:
    low: float
    high: float

    def __contains__(self, value):
        # A float that went through decimal text and a division may differ in the last digits.
        slack = 1e-9 * max(1.0, abs(self.low), abs(self.high))
        return self.low - slack <= value <= self.high + slack

    def scaled(self, divisor):
        return Bounds(self.low / divisor, self.high / divisor)


class Between:
    """The readings just before and just after a moment, as bounds for what was read in between."""

    def __init__(self, before, after):
        assert before, "no reading before the sample"
        assert after, "no reading after the sample"
        self.readings = before + after

    @classmethod
    def around(cls, readings, unix_ms, width_ms, count=2):
        """Of a series of readings, the last ones that ended before and the first that began after."""
        before = [r for r in readings if r["end_ms"] <= unix_ms - 2]
        after = [r for r in readings if r["start_ms"] >= unix_ms + width_ms]
        return cls(before[-count:], after[:count])

    def get(self, name):
        values = [r[name] for r in self.readings]
        return Bounds(min(values), max(values))

    def difference(self, name, minus):
        a, b = self.get(name), self.get(minus)
        return Bounds(max(0, a.low - b.high), max(0, a.high - b.low))

    def gauges(self):
        """Series that one reading gives, except those relative to a limit."""
        working_set = self.difference("memory.usage", "memory.inactive_file").scaled(MB)
        megabytes = lambda name: self.get(name).scaled(MB)  # noqa: E731
        return {
            "container_memory_usage_megabytes": megabytes("memory.usage"),
            "container_memory_working_set_megabytes": working_set,
            "container_memory_anon_megabytes": megabytes("memory.rss"),
            "container_memory_file_megabytes": megabytes("memory.cache"),
            "container_memory_shmem_megabytes": megabytes("memory.shmem"),
            "container_memory_kernel_megabytes": megabytes("memory.kernel"),
            "container_memory_peak_megabytes": megabytes("memory.peak"),
            "container_memory_swap_megabytes": self.difference("memory.memsw", "memory.usage").scaled(MB),
            "container_cpu_throttled_seconds": self.get("cpu.throttled_time").scaled(1e9),
            "container_io_read_megabytes": megabytes("io.read"),
            "container_io_write_megabytes": megabytes("io.write"),
            "container_pids": self.get("pids"),
            "pod_network_receive_megabytes": megabytes("network.received"),
            "pod_network_transmit_megabytes": megabytes("network.sent"),
        }

    def process_gauges(self):
        """Series of a process tree of one process."""
        return {
            "process_rss_megabytes": self.get("process.rss_pages").scaled(MB / PAGE),
            "process_count": Bounds(1, 1),
            "process_threads": self.get("process.threads"),
        }

    def relative_to(self, limit_bytes):
        """Series relative to a memory limit at the own level."""
        working_set = self.difference("memory.usage", "memory.inactive_file")
        return {
            "container_memory_limit_megabytes": Bounds(limit_bytes / MB, limit_bytes / MB),
            "container_memory_limit_level_working_set_megabytes": working_set.scaled(MB),
            "container_memory_working_set_percentage": working_set.scaled(limit_bytes / 100),
            "container_memory_headroom_megabytes": Bounds(
                (limit_bytes - working_set.high) / MB, (limit_bytes - working_set.low) / MB
            ),
        }


def rates(first, second, elapsed_s, cpu_limit):
    """Series that two readings give: `first` and `second` are the Between of two samples, elapsed_s apart."""
    # The samples' own clock has milliseconds, and a file is read a little after the tick it belongs to.
    shortest, longest = elapsed_s - 0.003, elapsed_s + 0.003

    def growth(name):
        a, b = first.get(name), second.get(name)
        return Bounds(max(0, b.low - a.high), b.high - a.low)

    def rate(name, unit):
        grown = growth(name)
        return Bounds(grown.low / longest / unit, grown.high / shortest / unit)

    throttled, periods = growth("cpu.nr_throttled"), growth("cpu.nr_periods")
    cores = rate("cpu.usage", 1e9)
    return {
        "container_cpu_usage_cores": cores,
        "container_cpu_utilization_percentage": cores.scaled(cpu_limit / 100),
        "container_cpu_throttled_periods_percentage": Bounds(
            100 * throttled.low / periods.high if periods.high else 0,
            min(100, 100 * throttled.high / periods.low) if periods.low else 100,
        ),
        "container_memory_pressure_full_percentage": rate("pressure.memory", 1e4),
        "container_cpu_pressure_some_percentage": rate("pressure.cpu", 1e4),
        "container_io_pressure_full_percentage": rate("pressure.io", 1e4),
        "pod_network_receive_megabytes_per_second": rate("network.received", MB),
        "pod_network_transmit_megabytes_per_second": rate("network.sent", MB),
        "process_cpu_cores": rate("process.ticks", TICK),
        "process_read_megabytes_per_second": rate("process.rchar", MB),
        "process_write_megabytes_per_second": rate("process.wchar", MB),
    }


def outside(values, bounds):
    """The series whose value is missing or not within its bounds, with both."""
    wrong = {}
    for name, allowed in bounds.items():
        value = values.get(name)
        if value is None or not math.isfinite(value) or value not in allowed:
            wrong[name] = (value, allowed)
    return wrong
