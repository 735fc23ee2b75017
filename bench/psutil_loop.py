"""The eight values of MLflow's system metrics (CPU, memory, disk, network), as MLflow asks psutil for them.

`psutil_loop.py SAMPLES PAUSE_S` prints the CPU time per sample in nanoseconds, pauses included.
"""

import sys
import time

import psutil


def sample(network_before):
    memory = psutil.virtual_memory()
    disk = psutil.disk_usage("/")
    network = psutil.net_io_counters()
    return {
        "cpu_utilization_percentage": psutil.cpu_percent(),
        "system_memory_usage_megabytes": memory.used / 1e6,
        "system_memory_usage_percentage": memory.used / memory.total * 100,
        "disk_usage_percentage": disk.percent,
        "disk_usage_megabytes": disk.used / 1e6,
        "disk_available_megabytes": disk.free / 1e6,
        "network_receive_megabytes": (network.bytes_recv - network_before.bytes_recv) / 1e6,
        "network_transmit_megabytes": (network.bytes_sent - network_before.bytes_sent) / 1e6,
    }


def main():
    samples, pause = int(sys.argv[1]), float(sys.argv[2])
    before = psutil.net_io_counters()
    for _ in range(3):
        sample(before)
    start = time.thread_time_ns()
    for _ in range(samples):
        sample(before)
        if pause:
            time.sleep(pause)
    print((time.thread_time_ns() - start) // samples)


if __name__ == "__main__":
    main()
