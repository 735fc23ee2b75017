"""Real processes as the ranks of a job."""

import os
import subprocess
import sys
import textwrap

# Every variable by which a process could think that it belongs to another job.
LAUNCHERS = ("RANKSCOPE_", "MLFLOW_", "SLURM_", "TORCHELASTIC_", "OMPI_", "PMI", "MASTER_", "RAY_")


def environment(**variables):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        clean.pop(name, None)
    return {**clean, **{name: str(value) for name, value in variables.items()}}


def start(program, *arguments, cwd, **variables):
    """Runs Python source; its two outputs are texts."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        cwd=cwd,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process, timeout=90):
    """(exit code, stdout, stderr)"""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def run(program, *arguments, cwd, **variables):
    code, out, err = end(start(program, *arguments, cwd=cwd, **variables))
    assert code == 0, err
    return out


def job(program, size, *, cwd, **variables):
    """All ranks at once: a list of what `end` gives, by rank."""
    ranks = [start(program, cwd=cwd, RANK=rank, WORLD_SIZE=size, **variables) for rank in range(size)]
    return [end(rank) for rank in ranks]
