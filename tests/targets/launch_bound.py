"""Kernels so short that the main thread can't launch them fast enough: the GPU is never full, and never long idle."""

from gpu import Gpu
from job import Job


class Module:
    """As small operations of a framework are called: a wrapper, hooks, a dispatch by type, and then the launch."""

    def __init__(self, gpu, seconds):
        self.gpu, self.seconds = gpu, seconds
        self.hooks, self.flags = {}, {"training": True, "autocast": False}
        self.graph = []
        self.kernels = {float: self.launch, int: self.launch}

    def __call__(self, *args, **kwargs):
        for hook in self.hooks.values():
            args = hook(self, args)
        result = self.forward(*args, **kwargs)
        return result if self.flags.get("training") else None

    def forward(self, x, scale=1.0, bias=None):
        for layer in ("autograd", "autocast", "backend"):
            left, right = (64, 1, 56, 56), (int(x) % 3 + 1, 128, 1, 56)
            shape = tuple(max(a, b) for a, b in zip(left, right, strict=True))
            strides = [1]
            for size in reversed(shape[1:]):
                strides.append(strides[-1] * size)
            self.graph.append({"layer": layer, "inputs": (left, right), "strides": tuple(reversed(strides))})
        return self.kernels[type(x)](x * scale + (0.0 if bias is None else bias))

    def launch(self, x):
        self.gpu.kernel(self.seconds, power=120, memory_controller=8)
        return x


job = Job("launch_bound")
gpu = Gpu(spinning=True)
job.gpus.append(gpu)
modules = [Module(gpu, job.vary(4.5e-6)) for _ in range(400)]
while job.running():
    x = 1.0
    with job.part("launch"):
        for module in modules:
            x = module(x) % 1000
    for module in modules:
        module.graph.clear()
    with job.part("gpu"):
        gpu.sync()
job.end()
