"""The example program `stacks`, which reads stacks as `diagnose` does, and programs whose stacks are known."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
TARGET = REPO / "tests/support/stack_target.py"
# A system Python, which any user may run.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable


@contextmanager
def installed():
    """Where every user can run them (pytest's own directories are private)."""
    binary = Path(os.environ.get("RANKSCOPE_BIN", REPO / "target/debug/rankscope"))
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        program = Path(shutil.copy(binary.parent / "examples/stacks", directory))
        script = Path(shutil.copy(TARGET, directory))
        program.chmod(0o755)
        script.chmod(0o644)
        yield Sampler(program, script)


class Sampler:
    def __init__(self, path, script):
        self.path, self.script = path, script

    def read(self, seconds, *pids, before=(), **options):
        command = [*before, self.path, *options.pop("options", ()), seconds, *pids]
        done = subprocess.run(
            list(map(str, command)), check=True, capture_output=True, text=True, timeout=60, **options
        )
        assert done.stderr == ""
        answer = json.loads(done.stdout)
        return Stacks(answer["stacks"], answer["cpu_seconds"])

    @contextmanager
    def target(self, kind, before=(), python=PYTHON):
        with running([*before, python, str(self.script), kind]) as process:
            process.words = process.stdout.readline().split()
            assert process.words[:1] == ["ready"], process.words
            yield process


class Stacks:
    def __init__(self, stacks, cpu_seconds):
        self.__dict__.update(stacks)
        self.cpu_seconds = cpu_seconds

    def frames_of(self, sample):
        """Leaf first, without a leaf that is not to be believed."""
        frames = [self.frames[index] for index in self.stacks[sample["stack"]]]
        return frames[sample["torn_leaf"] :]

    def of(self, **like):
        return [s for s in self.samples if all(s[key] == value for key, value in like.items())]

    def functions(self, **like):
        """Names on the stacks, each sample once."""
        return Counter(name for s in self.of(**like) for name in {f["function"] for f in self.frames_of(s)})


@contextmanager
def running(command, **options):
    process = subprocess.Popen(
        list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
