"""Kernels so short that the main thread can't launch them fast enough: the GPU is never full, and never long idle."""

from functools import partial

from gpu import WAITING, Gpu
from job import Job


class Model:
    """Many small operations: the launches are spread over the model, its loss and the optimizer."""

    def __init__(self, launch, blocks):
        self.launch, self.blocks = launch, blocks

    def __call__(self):
        for block in range(self.blocks):
            self.attention(block)
            self.feed_forward(block)

    def norm(self, block):
        self.launch()
        return block + 1

    def attention(self, block):
        scale = self.norm(block) ** -0.5
        self.launch()
        self.launch()
        self.softmax(scale)
        self.launch()

    def softmax(self, scale):
        self.launch()
        return scale

    def feed_forward(self, block):
        self.norm(block)
        self.launch()
        self.activation()
        self.launch()

    def activation(self):
        self.launch()

    def loss(self):
        self.launch()
        self.launch()

    def backward(self):
        for block in reversed(range(self.blocks)):
            self.feed_forward(block)
            self.launch()
            self.attention(block)


class Optimizer:
    def __init__(self, launch, parameters):
        self.launch, self.parameters = launch, parameters

    def step(self):
        for number in range(self.parameters):
            self.moments(number)
            self.launch()

    def moments(self, number):
        self.launch()
        self.launch()


job = Job("launch_bound")
gpu = Gpu(spinning=True)
job.gpus.append(gpu)
launch = partial(gpu.launch, job.vary(4.5e-6), WAITING, 8, job.vary(7e-6, by=0.1))
blocks = int(job.vary(24))
model, optimizer = Model(launch, blocks), Optimizer(launch, 4 * blocks)
while job.running():
    with job.part("launch"):
        model()
        model.loss()
        model.backward()
        optimizer.step()
    with job.part("gpu"):
        gpu.sync()
job.end()
