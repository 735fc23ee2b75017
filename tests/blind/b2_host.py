"""What the host is busy with: a compiler, files that are written, the collector."""

import ast
import gc
import hashlib
import marshal
import os
import py_compile
import shutil
import subprocess
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

import numpy as np
from b2_common import begin, leave, main, steps
from mainthread import collector_clock
from safetensors.numpy import save_file


def compile_ptxas():
    """Kernels for each new shape are lowered in Python and assembled by `ptxas`, into Triton's cache."""
    job, gpu = begin("jit_compile", "compile")
    cache = Path(os.environ.get("HOME", "/tmp")) / ".triton" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    ptxas = Path.cwd() / "ptxas"
    shutil.copy("/usr/bin/as", ptxas)
    kernel, lines, shape = job.vary(0.03), int(job.vary(90_000)), 0

    def lowered(shape):
        return "\n".join(f"add ${shape + n % 97}, %rax\nlea {n % 64}(%rbx,%rcx), %rdx" for n in range(lines))

    while job.running():
        with job.part("compile"):
            for _ in range(3):
                key = hashlib.sha256(str(shape).encode()).hexdigest()[:16]
                (cache / key).mkdir(exist_ok=True)
                source = cache / key / "kernel.ptx"
                source.write_text(lowered(shape) + "\n")
                subprocess.run([ptxas, "-o", cache / key / "kernel.cubin", source], check=True)
                shape += 1
        steps(job, gpu, kernel, 15)
    job.facts["compiled"] = shape
    job.end()


class Unroll(ast.NodeTransformer):
    """Folds the length into the graph, as a tracing compiler does."""

    def __init__(self, length):
        self.length = length

    def visit_Name(self, node):
        return ast.Constant(self.length) if node.id == "length" else node


def compile_traced():
    """Each sequence has another length, and each length its own graph: traced, rewritten and compiled, and cached."""
    job, gpu = begin("jit_compile", "compile")
    cache = Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR") or tempfile.mkdtemp())
    graph = "def call(x, length):\n" + "\n".join(
        f"    v{n} = x[{n}] * length + v{n - 1} if {n} < length else (x[0], length)" for n in range(1, 1500)
    )
    kernel, length = job.vary(0.03), 0
    while job.running():
        with job.part("compile"):
            for _ in range(2):
                length += 1
                tree = ast.fix_missing_locations(Unroll(length).visit(ast.parse(graph)))
                tree.body[0].args.args[1].arg = "unused"
                folder = cache / f"{length % 50:02x}"
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"graph_{length}.py"
                path.write_text(ast.unparse(tree))
                py_compile.compile(str(path), doraise=True)
        steps(job, gpu, kernel, 12)
    job.facts["compiled"] = length
    job.end()


def checkpoint_safetensors():
    """Weights and both moments of the optimizer as safetensors, each on the disk before the next one is written."""
    job, gpu = begin("checkpoint", "save")
    each = int(job.vary(20)) << 18
    state = {name: {f"layer{n}": np.ones(each // 4, dtype=np.float32) for n in range(4)} for name in "wmv"}
    kernel, saved, every = job.vary(0.05), -9.0, job.vary(2.0)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="blind-") as directory:
        while job.running():
            steps(job, gpu, kernel, 1)
            if job.elapsed() - saved > every:
                with job.part("save"):
                    for name, tensors in state.items():
                        path = f"{directory}/{name}.safetensors"
                        save_file(tensors, path)
                        fd = os.open(path, os.O_RDONLY)
                        os.fsync(fd)
                        os.close(fd)
                saved = job.elapsed()
    job.end()


def checkpoint_child():
    """A process of its own writes the copy, and the next checkpoint must wait until the last one is written."""
    job, gpu = begin("checkpoint", "save")
    weights = np.random.default_rng(0).random((int(job.vary(90)), 1 << 17))
    kernel, saved, every, child = job.vary(0.04), -9.0, job.vary(0.5), 0
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="blind-") as directory:
        while job.running():
            steps(job, gpu, kernel, 1)
            if job.elapsed() - saved > every:
                with job.part("save"):
                    if child:
                        os.waitpid(child, 0)
                    child = os.fork()
                    if not child:
                        with open(f"{directory}/step.npy", "wb", buffering=0) as file:
                            for row in weights:
                                file.write(row)
                            os.fsync(file.fileno())
                        os._exit(0)
                saved = job.elapsed()
        leave_child(child)
    job.end()


def leave_child(child):
    if child:
        os.kill(child, 9)
        os.waitpid(child, 0)


def gc_memory_watch():
    """A thread keeps the memory small: it calls the collector again and again, over a large annotated data set."""
    job, gpu = begin("garbage_collection", "collector")
    data = [{"caption": [n], "boxes": [[n, 0], [n, 1]]} for n in range(int(job.vary(350_000)))]
    kernel, pause = job.vary(0.01), job.vary(0.12)
    collector_clock(job)

    def watch():
        while True:
            time.sleep(pause)
            gc.collect()

    threading.Thread(target=watch, daemon=True).start()
    while job.running():
        steps(job, gpu, kernel, 4)
    job.facts["samples"] = len(data)
    leave(job)


def gc_shard_index():
    """Loads the index of the next shard: so many containers that the collector runs over all of them in it."""
    job, gpu = begin("garbage_collection", "collector")
    packed = marshal.dumps([[[n % 100], [], [], []] for n in range(int(job.vary(110_000)))], 2)
    shards, kernel = deque(maxlen=3), job.vary(0.03)
    collector_clock(job)
    while job.running():
        shards.append(marshal.loads(packed))
        steps(job, gpu, kernel, 3)
    job.end()


if __name__ == "__main__":
    main(
        compile_ptxas,
        compile_traced,
        checkpoint_safetensors,
        checkpoint_child,
        gc_memory_watch,
        gc_shard_index,
    )
