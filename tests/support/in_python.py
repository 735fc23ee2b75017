"""Small programs that import rankscope, each in a process of its own, and the records that they leave."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

# A hang is a failure; how long it took says nothing.
HANG = 100


def python(script, *arguments, prefix=(), check=0, **environment):
    """Runs it; `check`: the exit code that is expected, None: any."""
    command = [*prefix, sys.executable, "-c", textwrap.dedent(script), *arguments]
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    if check is not None:
        assert done.returncode == check, done.stdout + done.stderr
    return done


def files(directory):
    return sorted(Path(directory).rglob("*.sqlite"))


def record(directory):
    found = files(directory)
    assert len(found) == 1, found
    return found[0]


def rows(path, query, *values):
    uri = f"file:{path}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
        return connection.execute(query, values).fetchall()


def reason(path):
    return rows(path, "SELECT reason FROM attempt")[0][0]


def ticks(path):
    return [row[0] for row in rows(path, "SELECT boottime_ns FROM tick ORDER BY id")]


def phases(path):
    query = (
        "SELECT json_extract(detail, '$.end'), json_extract(detail, '$.begin'), json_extract(detail, '$.step') "
        "FROM event WHERE kind = 'phase' ORDER BY id"
    )
    return rows(path, query)


def values(path, series):
    query = "SELECT v.value FROM tick_value v JOIN series s ON s.id = v.series_id WHERE s.name = ? ORDER BY v.tick_id"
    return [row[0] for row in rows(path, query, series)]
