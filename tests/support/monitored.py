"""A run that MLflow's own system metrics monitor records: `monitored.py SECONDS MEGABYTES`; prints the run id.

Grows by MEGABYTES over SECONDS, page by page. MLFLOW_TRACKING_URI says where the run goes.
"""

import sys
import time

import mlflow

MB = 1_000_000


def main():
    seconds, megabytes = float(sys.argv[1]), int(sys.argv[2])
    held = []
    with mlflow.start_run(log_system_metrics=True) as run:
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < seconds:
            while len(held) < megabytes * elapsed / seconds:
                held.append(b"x" * MB)
            time.sleep(0.02)
    print(run.info.run_id)


if __name__ == "__main__":
    main()
