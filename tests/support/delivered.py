"""What a record says that MLflow must have, worked out anew from the store's tables, and what MLflow has."""

import contextlib
import json
import sqlite3
import time
from itertools import groupby
from pathlib import Path

import mlflow

MAX_TOO = "container_memory_working_set_megabytes"


class Record:
    def __init__(self, path):
        self.path = Path(path)
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)

    @classmethod
    def only(cls, directory):
        files = sorted(Path(directory).rglob("*.sqlite"))
        assert len(files) == 1, files
        return cls(files[0])

    def meta(self, key):
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", [key]).fetchone()
        return row[0] if row else None

    def runs(self):
        """Run id → (row id, how, start, state)."""
        query = "SELECT run_id, id, how, start_unix_ms, state FROM delivery_run ORDER BY id"
        return {row[0]: row[1:] for row in self.db.execute(query)}

    def windows(self):
        query = (
            "SELECT id, start_unix_ms, end_unix_ms, last_unix_ms, last_boottime_ns FROM window ORDER BY id"
        )
        return self.db.execute(query).fetchall()

    def groups(self, run):
        """First and last window of each that the run got as one."""
        query = "SELECT first_window_id, window_id FROM delivery WHERE delivery_run_id = ? ORDER BY window_id"
        return self.db.execute(query, [run]).fetchall()

    def delivered(self, run):
        return [window for first, last in self.groups(run) for window in range(first, last + 1)]

    def start(self):
        return self.db.execute("SELECT start_unix_ms, start_boottime_ns FROM attempt").fetchone()

    def moments(self, run_id):
        """First and last window, timestamp and step of each group that the run has."""
        run, _, run_start, _ = self.runs()[run_id]
        start_ms, start_ns = self.start()
        times = {window: (unix_ms, ns) for window, _, _, unix_ms, ns in self.windows()}
        for first, final in self.groups(run):
            unix_ms, boottime_ns = times[final]
            nanoseconds = (start_ms - run_start) * 10**6 + boottime_ns - start_ns
            yield first, final, unix_ms, max(1, nanoseconds // 10**9)

    def shares(self, width):
        """Series that others may have too → (subject, since when it is ours); no subject: another writes it."""
        query = (
            "SELECT s.name, (SELECT identity FROM origin o WHERE o.series_id = s.id ORDER BY id DESC LIMIT 1) "
            "FROM series s"
        )
        writers = json.loads(self.meta("writers") or "{}")
        shares = {}
        for name, identity in self.db.execute(query):
            if identity in writers:
                share = writers[identity]
                ranks = [f"{int(rank):0{width}}" for rank in share["ranks"].split("-")]
                word = "ranks" if len(ranks) > 1 else "rank"
                ours = share["writer"] == "us"
                shares[name] = (f"{word}_{'-'.join(ranks)}" if ours else None, share["from_unix_ms"])
        return shares

    def points(self, run_id, series="core", rank="rank_0"):
        """(key, value, timestamp, step) of every window, or group of windows, that the run has."""
        classes = ("core",) if series == "core" else ("core", "all")
        constants, points = {}, set()
        shares = self.shares(len(rank.removeprefix("rank_")))
        starts = {window: start for window, start, *_ in self.windows()}
        for first, final, unix_ms, step in self.moments(run_id):
            query = (
                "SELECT s.name, s.kind, s.scope, s.class, v.n, v.mean, v.max, v.last FROM window_value v "
                "JOIN series s ON s.id = v.series_id WHERE v.window_id BETWEEN ? AND ? ORDER BY s.id, v.window_id"
            )
            found = groupby(self.db.execute(query, [first, final]), key=lambda row: row[:4])
            for (name, kind, scope, delivery), values in found:
                if delivery not in classes:
                    continue
                subject, since = shares.get(name, (rank, None))
                if subject is None or (since is not None and starts[first] < since):
                    continue
                subject = f"node_{self.meta('node')}" if scope == "node" else subject
                key = f"system/{subject}/{name}"
                mean, highest, last = merged(list(values))
                value = mean if kind == "gauge" else last
                if kind == "constant":
                    if constants.get(key) == value:
                        continue
                    constants[key] = value
                points.add((key, value, unix_ms, step))
                if name == MAX_TOO:
                    points.add((f"{key}_max", highest, unix_ms, step))
        return points


def merged(rows):
    """Mean of all samples, highest, last."""
    n, mean = 0, 0.0
    for *_, count, of_window, _, _ in rows:
        n += count
        mean = mean * (1.0 - count / n) + of_window * (count / n)
    return mean, max(row[6] for row in rows), rows[-1][7]


def training_steps(server, record, run_id, metric="loss", rank="rank_0"):
    """Of each window the step of the metric's newest point that is not later; from this attempt."""
    history = mlflow.MlflowClient(server.uri).get_metric_history(run_id, metric)
    if not any(point.step > 0 for point in history):
        return set()
    start, _ = record.start()
    points = set()
    for _, _, unix_ms, step in record.moments(run_id):
        known = [(p.timestamp, p.step) for p in history if start <= p.timestamp <= unix_ms]
        if known:
            points.add((f"system/{rank}/training_step", float(max(known)[1]), unix_ms, step))
    return points


def rows(server, run_id):
    """What the server's database has of ranks and nodes."""
    query = "SELECT key, value, timestamp, step FROM metrics WHERE run_uuid = ? AND key LIKE 'system/%'"
    return server.sql(f"{query} AND key NOT LIKE 'system/job/%'", run_id)


def job_rows(server, run_id):
    """What was rolled up over ranks."""
    query = "SELECT key, value, timestamp, step FROM metrics WHERE run_uuid = ? AND key LIKE 'system/job/%'"
    return server.sql(query, run_id)


def history(server, run_id):
    """The same through MLflow's own client."""
    client = mlflow.MlflowClient(server.uri)
    keys = [key for key in client.get_run(run_id).data.metrics if key.startswith("system/")]
    points = [point for key in keys for point in client.get_metric_history(run_id, key)]
    return [(point.key, point.value, point.timestamp, point.step) for point in points]


def check_run(server, record, run_id, **options):
    """Everything that is noted as delivered is there, once, and nothing else."""
    expected = record.points(run_id, **options) | training_steps(server, record, run_id)
    in_database = rows(server, run_id)
    assert len(in_database) == len(set(in_database)), "a point is there twice"
    assert set(in_database) == expected
    assert sorted(history(server, run_id)) == sorted(expected)
    assert all(step >= 1 for _, _, _, step in expected)
    return expected


def tagged(server, job):
    """Run id → (status, end time, tags) of every run with the job's tag that is not deleted."""
    query = (
        "SELECT r.run_uuid, r.status, r.end_time FROM runs r JOIN tags t ON t.run_uuid = r.run_uuid "
        "WHERE t.key = 'rankscope.job' AND t.value = ? AND r.lifecycle_stage = 'active' ORDER BY r.start_time"
    )
    return {run: (status, end, tags(server, run)) for run, status, end in server.sql(query, job)}


def tags(server, run_id):
    return dict(server.sql("SELECT key, value FROM tags WHERE run_uuid = ?", run_id))


def status(server, run_id):
    return server.sql("SELECT status FROM runs WHERE run_uuid = ?", run_id)[0][0]


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        # A record that is just being made has no tables.
        with contextlib.suppress(sqlite3.OperationalError):
            if value := condition():
                return value
        time.sleep(0.1)
    raise AssertionError("it did not happen")
