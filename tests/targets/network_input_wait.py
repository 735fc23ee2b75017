"""Two workers fetch each sample from a slow server: they, and with them the GPU, wait for the network."""

import http.client
import sys

from gpu import Gpu
from job import Job
from loaders import Dataset, Loader

job = Job("network_input_wait", "input")
port = int(job.rest[0])
connections = {}


def fetch(_index):
    if not connections:
        connections[0] = http.client.HTTPConnection("127.0.0.1", port)
    connections[0].request("GET", "/")
    assert connections[0].getresponse().read(), sys.argv


gpu = Gpu()
job.gpus.append(gpu)
loader = Loader(Dataset(0.003, fetch), workers=2)
kernel = job.vary(0.03)
next(loader)
while job.running():
    with job.part("input"):
        batch = next(loader)
    gpu.copy(batch)
    gpu.kernel(kernel)
    with job.part("gpu"):
        gpu.sync()
loader.close()
job.end()
