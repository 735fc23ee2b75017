"""A notebook that somebody left: the model lies on the GPU, and the program waits for a line that doesn't come."""

import os
import select

from gpu import Gpu
from job import Job

job = Job("process_idle", "waiting")
gpu = Gpu()
job.gpus.append(gpu)
for _ in range(10):
    gpu.kernel(job.vary(0.05))
    gpu.sync()
reading, _writing = os.pipe()
job.ready()
job.end_from_outside()
select.select([reading], [], [])
