"""Records of a job that nobody ran: as long and with as many ranks as asked for, in the schema of a real record.

Values are made up by SQL from the rank and the window, so that whoever knows both can tell what a report has to show:
means, with a minimum and a maximum around them, a peak of one window now and then, GPUs that wait for one slow rank.
"""

import json
import sqlite3
import subprocess
import uuid
from pathlib import Path

START = 1_760_000_000_000
WINDOW_MS = 10_000
ROLLUP_MS = 300_000
WINDOWS_OF_ROLLUP = ROLLUP_MS // WINDOW_MS
TICKS = 900

# name, unit, kind, scope, mean of window w of rank r. `noise` is in 0..1, other in each window.
GPU = [
    ("gpu_0_utilization_percentage", "%", "gauge", "gpu", "CASE r WHEN {slow} THEN 62 ELSE 97 END + noise"),
    ("gpu_0_memory_usage_percentage", "%", "gauge", "gpu", "80 + r % 4 + noise"),
    ("gpu_0_power_usage_watts", "W", "gauge", "gpu", "CASE r WHEN {slow} THEN 610 ELSE 395 END + 20 * noise"),
    ("gpu_0_power_limit_watts", "W", "constant", "gpu", "700"),
]
CONTAINER = [
    ("container_memory_anon_megabytes", "MB", "gauge", "container", "20000 + 900 * r + 20000.0 * w / n + 90 * noise"),
    ("container_memory_shmem_megabytes", "MB", "gauge", "container", "4000 + 100 * noise"),
    ("container_memory_file_megabytes", "MB", "gauge", "container", "9000 + 800 * noise"),
    ("container_memory_working_set_megabytes", "MB", "gauge", "container",
     "26000 + 900 * r + 20000.0 * w / n + 90 * noise"),
    ("container_memory_limit_level_working_set_megabytes", "MB", "gauge", "container",
     "26000 + 900 * r + 20000.0 * w / n + 90 * noise"),
    ("container_memory_limit_megabytes", "MB", "constant", "container", "68719.476736"),
    ("container_cpu_usage_cores", "cores", "gauge", "container", "3 + r % 3 + 3 * noise"),
    ("container_cpu_limit_cores", "cores", "constant", "container", "8"),
    ("container_cpu_throttled_periods_percentage", "%", "gauge", "container", "8 * noise"),
    ("container_cpu_pressure_some_percentage", "%", "gauge", "container", "30 * noise"),
    ("container_io_read_megabytes", "MB", "counter", "container", "w * 25.0"),
    ("container_io_write_megabytes", "MB", "counter", "container", "w * 2.0"),
    ("container_memory_pressure_full_percentage", "%", "gauge", "container", "noise"),
    ("container_io_pressure_full_percentage", "%", "gauge", "container", "4 * noise"),
    ("container_pids", "tasks", "gauge", "container", "120 + 10 * noise"),
    ("pod_network_receive_megabytes_per_second", "MB/s", "gauge", "pod", "300 + 200 * noise"),
    ("pod_network_transmit_megabytes_per_second", "MB/s", "gauge", "pod", "280 + 200 * noise"),
    ("rootfs_usage_percentage", "%", "gauge", "rootfs", "61 + noise"),
    ("mount_shm_usage_percentage", "%", "gauge", "mount", "12 + noise"),
    ("process_rss_megabytes", "MB", "gauge", "process", "24000 + 900 * r + 20000.0 * w / n + 90 * noise"),
    ("process_cpu_cores", "cores", "gauge", "process", "2.9 + r % 3 + 3 * noise"),
    ("process_count", "processes", "gauge", "process", "9"),
    ("process_threads", "threads", "gauge", "process", "96 + 10 * noise"),
    ("process_read_megabytes_per_second", "MB/s", "gauge", "process", "120 + 80 * noise"),
    ("process_write_megabytes_per_second", "MB/s", "gauge", "process", "4 + 3 * noise"),
    ("training_step", "steps", "counter", "process", "w * 40 - CASE r WHEN {slow} THEN 2 ELSE 0 END"),
    ("training_epoch", "epochs", "counter", "process", "w / MAX(n / 12, 1)"),
]  # fmt: skip
NODE = [
    ("node_cpu_utilization_percentage", "%", "gauge", "node", "55 + 20 * noise"),
    ("node_cpu_iowait_percentage", "%", "gauge", "node", "3 * noise"),
    ("node_memory_usage_megabytes", "MB", "gauge", "node", "700000 + 90000 * noise"),
    ("node_pressure_cpu_some_percentage", "%", "gauge", "node", "12 * noise"),
    ("node_disk_read_megabytes_per_second", "MB/s", "gauge", "node", "800 * noise"),
]
# Nobody draws these: as many as a real record has beside the others.
OTHERS = [
    (f"mount_other{n}_available_megabytes", "MB", "gauge", "mount", f"{n} * 1000 + 50 * noise")
    for n in range(34)
]


def schema(rankscope, directory):
    """The tables of a record, as the program makes them."""
    subprocess.run(
        [str(rankscope), "run", "--no-gpu", "--store", str(directory), "--", "true"],
        check=True,
        capture_output=True,
    )
    (record,) = Path(directory).glob("*/*.sqlite")
    with sqlite3.connect(record) as db:
        made = [row[0] for row in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
        pragmas = {
            name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id")
        }
    return made, pragmas


class Made:
    """One record. `names`: the rest of what stands in it and others chose."""

    def __init__(
        self,
        tables,
        path,
        rank,
        world,
        *,
        windows,
        slow=3,
        exit_code=0,
        names=None,
        gpu=True,
        others=True,
        ticks=TICKS,
    ):
        names = names or {}
        made, pragmas = tables
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.rank = path, rank
        # A rank comes a little later than the one before.
        self.start = START + rank * 1500
        self.end = self.start + windows * WINDOW_MS
        db = sqlite3.connect(path)
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 4096;")
        for sql in made:
            db.execute(sql)
        for name, value in pragmas.items():
            db.execute(f"PRAGMA {name} = {value}")
        meta = {
            "schema_version": pragmas["user_version"], "rankscope_version": "0", "job": "made", "rank": rank,
            "world_size": world, "boot_id": str(uuid.UUID(int=rank // 8 + 1)), "node": f"node-{rank // 8}",
            "interval_ms": 1000, "window_ms": WINDOW_MS, "program": "train.py", "journal_mode": "wal",
        } | names.get("meta", {})  # fmt: skip
        db.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        db.execute(
            "INSERT INTO attempt VALUES (1, ?, 0, ?, ?, ?, ?, ?, NULL, ?)",
            (self.start, self.end, windows * 10**10, self.end, windows * 10**10, exit_code, "completed"),
        )
        series = CONTAINER + (GPU if gpu else []) + NODE + (OTHERS if others else [])
        for at, (name, unit, kind, scope, _) in enumerate(series, 1):
            db.execute("INSERT INTO series VALUES (?, ?, ?, ?, ?, 'core')", (at, name, unit, kind, scope))
            identity = f"{scope}:{rank // 8 if scope == 'node' else rank}"
            source = names.get("source", f"/sys/fs/cgroup/made/{name}")
            level = names.get("level", "/kubepods/pod7/c1") if scope == "container" else None
            db.execute(
                "INSERT INTO origin VALUES (NULL, ?, ?, 0, ?, ?, ?, NULL)",
                (at, self.start, identity, source, level),
            )
        expressions = " ".join(
            f"WHEN {at} THEN {text.format(slow=slow)}" for at, (*_, text) in enumerate(series, 1)
        )
        scale = {"r": rank, "n": windows}
        value = f"""SELECT d.id AS id, s.id AS s, CASE s.id {expressions} END AS v, s.kind = 'gauge' AS g, w
            FROM (SELECT *, (w * 7919 + :r * 104729) % 1000 / 1000.0 AS noise, :r AS r, :n AS n
            FROM (SELECT {{columns}} FROM {{table}})) d CROSS JOIN series s"""
        of_windows = value.format(columns="id, id AS w", table="window WHERE id BETWEEN :a AND :b")
        # In the order in which a recorder writes, since where a page lies in a file decides what reading it costs.
        for first in range(1, windows + 1, WINDOWS_OF_ROLLUP):
            stretch = {"a": first, "b": min(first + WINDOWS_OF_ROLLUP - 1, windows)}
            db.execute(
                """WITH RECURSIVE c(w) AS (SELECT :a UNION ALL SELECT w + 1 FROM c WHERE w < :b) INSERT INTO window
                SELECT w, :s + (w - 1) * :l, :s + w * :l, :s + w * :l, w * :l * 1000000, 10 FROM c""",
                {"s": self.start, "l": WINDOW_MS, **stretch},
            )
            # Every 1,000th window has a peak that its mean does not show.
            db.execute(
                f"""INSERT INTO window_value SELECT id, s, 10, v, CASE g WHEN 1 THEN v * 0.97 ELSE v END,
                CASE g WHEN 1 THEN v * CASE WHEN w % 1000 = 500 THEN 1.25 ELSE 1.02 END ELSE v END, v
                FROM ({of_windows})""",
                {**scale, **stretch},
            )
            db.execute(
                """INSERT INTO rollup SELECT (:a - 1) / 30, min(start_unix_ms), max(end_unix_ms), max(last_unix_ms),
                max(last_boottime_ns), count(*), sum(ticks) FROM window WHERE id BETWEEN :a AND :b""",
                stretch,
            )
            db.execute(
                """INSERT INTO rollup_value SELECT (:a - 1) / 30, series_id, sum(n), sum(mean * n) / sum(n), min(min),
                max(max), max(last) FROM window_value WHERE window_id BETWEEN :a AND :b GROUP BY series_id""",
                stretch,
            )
        ticks = min(ticks, windows * 10)
        db.execute(
            """WITH RECURSIVE c(t) AS (SELECT 1 UNION ALL SELECT t + 1 FROM c WHERE t < :k)
            INSERT INTO tick SELECT t, :e - (:k - t) * 1000, (:b - (:k - t) * 1000) * 1000000 FROM c""",
            {"k": ticks, "e": self.end, "b": windows * WINDOW_MS},
        )
        columns = f"id, {windows} - ({ticks} - id) / 10 AS w"
        db.execute(
            f"INSERT INTO tick_value SELECT id, s, v FROM ({value.format(columns=columns, table='tick')})",
            scale,
        )
        for kind, unix_ms, detail in names.get("events", []):
            boottime_ns = (unix_ms - self.start) * 1_000_000
            db.execute(
                "INSERT INTO event VALUES (NULL, ?, ?, ?, ?)",
                (unix_ms, boottime_ns, kind, json.dumps(detail)),
            )
        for name, reason, detail in names.get("missing", []):
            unit = ("MB", "gauge", "node")
            db.execute("INSERT INTO series VALUES (NULL, ?, ?, ?, ?, 'all')", (name, *unit))
            db.execute(
                "INSERT INTO missing SELECT NULL, max(id), ?, ?, 0, NULL FROM series", (reason, detail)
            )
        db.commit()
        db.close()


def job(rankscope, directory, scratch, *, ranks, windows, **options):
    """A folder with a record for each rank."""
    tables = schema(rankscope, scratch)
    return [
        Made(tables, Path(directory) / f"rank_{rank:02}.sqlite", rank, ranks, windows=windows, **options)
        for rank in range(ranks)
    ]
