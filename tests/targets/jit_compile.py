"""Every few steps a new shape: a kernel is compiled by a C++ compiler, and written to a cache directory."""

import os
import subprocess
import tempfile
from pathlib import Path

from gpu import Gpu
from job import Job

KERNEL = """
#include <map>
#include <string>
#include <vector>
template <int N> float kernel(const std::vector<float> &in, std::map<std::string, float> &out) {{
    float sum = 0;
    for (float x : in) sum += x * {shape} + kernel<N - 1>({{x}}, out);
    return out["sum" + std::to_string(N)] = sum;
}}
template <> float kernel<0>(const std::vector<float> &in, std::map<std::string, float> &) {{ return in[0]; }}
float run(const std::vector<float> &in, std::map<std::string, float> &out) {{ return kernel<24>(in, out); }}
"""


def build(cache, shape):
    """As Inductor and the extensions of PyTorch do it."""
    source = cache / f"k{shape}.cpp"
    source.write_text(KERNEL.format(shape=shape))
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-o", source.with_suffix(".so"), source], check=True)


def cache_directory(otherwise):
    cache = Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", otherwise))
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def main():
    job = Job("jit_compile", "compile")
    gpu = Gpu()
    job.gpus.append(gpu)
    kernel, steps = job.vary(0.03), int(job.vary(30))
    with tempfile.TemporaryDirectory() as own:
        cache = cache_directory(own)
        shape = 0
        while job.running():
            with job.part("compile"):
                build(cache, shape)
            shape += 1
            for _ in range(steps):
                gpu.kernel(kernel)
                with job.part("gpu"):
                    gpu.sync()
    job.facts["compiled"] = shape
    job.end()


if __name__ == "__main__":
    main()
