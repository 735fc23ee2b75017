"""Runs the example `many_ranks` against a default MLflow server behind the proxy, and works out what became of it.

Run as a program (`make bench-ranks`): prints that for rankscope and for the pattern of MLflow's own monitor.
"""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from support.mlflow_server import MlflowServer
from support.proxy import Proxy

#: As `mlflow server` without options.
DEFAULT = ("--workers", "4")


def processor(server):
    """Seconds that the server and its workers have used."""
    try:
        parent = psutil.Process(server.process.pid)
        return sum(sum(p.cpu_times()[:2]) for p in [parent, *parent.children(recursive=True)])
    except psutil.NoSuchProcess:
        return 0.0


def kind(request):
    path = request.path.split("?")[0]
    return "artifact" if "/mlflow-artifacts/" in path else "/".join(path.split("/")[-2:])


def play(example, server, store, pattern, ranks, window, seconds, grace):
    """One job of so many ranks; a dictionary of figures."""
    with Proxy(server) as proxy:
        environment = {**os.environ, "MLFLOW_TRACKING_URI": proxy.uri}
        before, began = processor(server), time.monotonic()
        command = [example, pattern, ranks, window, seconds, grace, store]
        done = subprocess.run(
            list(map(str, command)), env=environment, stdout=subprocess.PIPE, timeout=seconds + grace + 300
        )
        assert done.returncode == 0
        figures = json.loads(done.stdout)
        figures |= {
            "seconds": time.monotonic() - began,
            "server_cpu_s": processor(server) - before,
            "requests": len(proxy.seen),
            "of_kind": dict(Counter(map(kind, proxy.seen))),
            "most_at_once": proxy.most_at_once,
            "longest_s": max(proxy.took),
        }
    return figures


def records(store):
    for path in sorted(Path(store).rglob("*.sqlite")):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)) as db:
            yield db


def delivered(store):
    """Of all records: points noted as delivered, windows that are not, and how late each window was, in seconds."""
    points, missing, lags = 0, 0, []
    for db in records(store):
        points += db.execute("SELECT coalesce(sum(points), 0) FROM delivery").fetchone()[0]
        query = (
            "SELECT (d.delivered_unix_ms - w.end_unix_ms) / 1e3 FROM window w LEFT JOIN delivery d "
            "ON w.id BETWEEN d.first_window_id AND d.window_id"
        )
        late = [row[0] for row in db.execute(query)]
        missing += late.count(None)
        lags += [lag for lag in late if lag is not None]
    return points, missing, sorted(lags)


def rows(server, ours):
    """Rows in the server's table of metrics: of ranks and nodes, and of the job."""
    of_job = "key LIKE 'system/job/%'"
    one = "SELECT count(*) FROM metrics m JOIN runs r ON r.run_uuid = m.run_uuid WHERE r.name = ? AND "
    return [server.sql(one + of, ours)[0][0] for of in (f"NOT {of_job}", of_job)]


def words(title, figures):
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(figures["of_kind"].items()))
    lines = [
        title,
        f"  requests       {figures['requests']} ({figures['requests'] / figures['seconds']:.1f}/s: {kinds})",
        f"  at once        {figures['most_at_once']} at most; the longest took {figures['longest_s']:.1f} s",
        f"  server         {figures['server_cpu_s']:.0f} s of CPU in {figures['seconds']:.0f} s",
    ]
    if lags := figures.get("lags"):
        middle, late = lags[len(lags) // 2], lags[int(len(lags) * 0.95)]
        lines.append(
            f"  delivery       {figures['rows']} rows, {figures['missing']} windows missing; the end took "
            f"{figures['end_s']:.1f} s; a window is late by {middle:.1f} s in the middle, {late:.1f} s of 95 %, "
            f"{lags[-1]:.1f} s at most"
        )
    else:
        stopped, failed = figures["ranks_that_stopped"], figures["failed_requests"]
        lines.append(
            f"  delivery       {figures['rows']} rows; {failed} requests failed, {stopped} ranks stopped for good"
        )
    if figures["problem"]:
        lines.append(f"  said           {figures['problem']}")
    return "\n".join(lines)


def rankscope(example, server, store, **load):
    figures = play(example, server, store, "rankscope", **load)
    figures["points"], figures["missing"], figures["lags"] = delivered(store)
    figures["rows"], figures["job_rows"] = rows(server, "many-ranks")
    return figures


def monitor(example, server, store, **load):
    figures = play(example, server, store, "monitor", **load)
    figures["rows"], _ = rows(server, "monitored")
    return figures


def main():
    example, ranks, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    load = {"ranks": ranks, "window": 10, "seconds": seconds, "grace": max(10, ranks // 10 + 10)}
    for pattern, play_it in (("rankscope", rankscope), ("MLflow's own monitor", monitor)):
        with tempfile.TemporaryDirectory() as directory:
            directory = Path(directory)
            with MlflowServer(directory / "mlflow", *DEFAULT) as server:
                figures = play_it(example, server, directory / "store", **load)
            print(words(f"{pattern}, {ranks} ranks, a window each 10 s:", figures), flush=True)


if __name__ == "__main__":
    main()
