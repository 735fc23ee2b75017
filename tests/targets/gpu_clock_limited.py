"""Kernels without a gap, on a board that has lowered its clock: too hot, or a power cap far below its limit."""

from gpu import Gpu
from job import Job

MOST = 1980
THERMAL = {0x20: "software", 0x40: "hardware"}
job = Job("gpu_clock_limited")
gpu = Gpu()
job.gpus.append(gpu)
reasons = job.random.choice([*THERMAL])
megahertz = int(job.vary(900, by=0.2))
gpu.limit_clock(megahertz, MOST, reasons)
gpu.set(56, "I", 91)
kernel = job.vary(0.03)
while job.running():
    gpu.kernel(kernel, power=150)
    gpu.kernel(kernel, power=150)
    with job.part("gpu"):
        gpu.sync()
job.facts |= {"reasons": hex(reasons), "clock_share": round(megahertz / MOST, 2)}
job.facts["lost_share"] = round(1 - megahertz / MOST, 3)
job.end()
