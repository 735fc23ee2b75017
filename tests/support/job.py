"""A short training script of some kind that ends in some way: `job.py KIND END [EXPERIMENT]`.

Without EXPERIMENT it is for a process that has MLFLOW_RUN_ID: `set_experiment` would not fit that run.
"""

import os
import signal
import subprocess
import sys
import time

kind, end = sys.argv[1:3]
experiment = sys.argv[3] if len(sys.argv) > 3 else None


def work(seconds=0.9):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        sum(range(2000))
        time.sleep(0.01)


def come_to_the_end():
    if end == "raise":
        raise RuntimeError("as asked for")
    if end == "exit":
        sys.exit(3)
    if end == "kill":
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def train():
    if kind == "none":
        work()
        come_to_the_end()
        return
    if kind == "subprocess":
        command = [sys.executable, __file__, "plain", end, *([experiment] if experiment else [])]
        done = subprocess.run(command)
        if done.returncode < 0:
            os.kill(os.getpid(), -done.returncode)
        sys.exit(done.returncode)
    import mlflow

    if experiment:
        mlflow.set_experiment(experiment)
    if kind == "plain":
        with mlflow.start_run():
            log(mlflow)
            come_to_the_end()
    elif kind == "unmanaged":
        mlflow.start_run()
        log(mlflow)
        come_to_the_end()
    elif kind == "nested":
        with mlflow.start_run():
            mlflow.log_param("outer", 1)
            with mlflow.start_run(nested=True):
                log(mlflow)
                come_to_the_end()
            work(0.3)
    elif kind == "several":
        for number in range(3):
            with mlflow.start_run():
                mlflow.log_param("number", number)
                log(mlflow)
                if number == 2:
                    come_to_the_end()


def log(mlflow):
    for step in range(3):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
        work(0.3)


print("begin", flush=True)
train()
print("end", flush=True)
