"""Calls the binary and checks its JSON against the documented shape."""

import json
import math
import os
import sqlite3
import subprocess
from pathlib import Path

SCOPES = {"node", "container", "pod", "rootfs", "mount", "gpu", "process"}


class Rankscope:
    def __init__(self, path):
        self.path = Path(path)

    def __str__(self):
        return str(self.path)

    def run(self, *arguments, check=None, timeout=200, **options):
        """Runs a command; `check` is the exit code that is expected, if any."""
        options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, **options}
        done = subprocess.run([self.path, *map(str, arguments)], timeout=timeout, **options)
        if check is not None:
            assert done.returncode == check, f"{arguments} ended with {done.returncode}:\n{done.stderr}"
        return done

    def sample(self, *arguments, **options):
        """The samples of `sample --json`, validated."""
        done = self.run("sample", "--json", *arguments, check=0, **options)
        return samples(done.stdout)


def samples(text):
    return [check_sample(json.loads(line)) for line in text.splitlines()]


def check_sample(sample):
    """One line of `sample --json`: every key, its type, and no value that is not a number."""
    assert sample.keys() >= {"time_unix_ms", "series", "missing"}
    assert isinstance(sample["time_unix_ms"], int)
    names = set()
    for row in sample["series"]:
        assert row.keys() >= {"name", "subject", "value", "unit", "scope", "source", "level", "note"}, row
        assert isinstance(row["value"], int | float), row
        assert math.isfinite(row["value"]), row
        for key in ("name", "subject", "unit", "scope", "source"):
            assert isinstance(row[key], str), row
            assert row[key], row
        for key in ("level", "note"):
            assert row[key] is None or (isinstance(row[key], str) and row[key]), row
        assert row["scope"] in SCOPES, row
        assert row["name"].startswith(row["scope"] + "_"), row
        names.add(row["name"])
    assert len(names) == len(sample["series"]), "a series is there twice"
    for row in sample["missing"]:
        assert row.keys() >= {"name", "scope", "reason", "detail"}, row
        assert all(isinstance(row[key], str) for key in ("name", "scope", "reason", "detail")), row
        assert row["name"], row
        assert row["reason"], row
        assert row["detail"], row
        assert row["scope"] in SCOPES, row
        assert row["name"] not in names, f"{row['name']} is both there and missing"
    return sample


def check_scope(answer):
    """`scope --json`."""
    assert answer.keys() >= {"environment", "thread_hint", "families"}
    environment = answer["environment"]
    assert isinstance(environment["container"], bool)
    assert isinstance(environment["why"], str)
    assert environment["why"]
    assert environment["cgroup"] in ("v1", "v2", "hybrid", "none")
    assert answer["thread_hint"] is None or answer["thread_hint"] >= 1
    assert answer["families"]
    for row in answer["families"]:
        keys = {
            "family",
            "scope",
            "identity",
            "source",
            "limit",
            "level",
            "same_for_ranks_on_this_node",
            "note",
        }
        assert row.keys() >= keys, row
        assert row["scope"] in SCOPES, row
        assert isinstance(row["same_for_ranks_on_this_node"], bool), row
        assert (
            row["limit"] is None or math.isfinite(row["limit"]) if not isinstance(row["limit"], str) else True
        )
    return answer


def by_name(sample):
    return {row["name"]: row for row in sample["series"]}


def missing(sample):
    return {row["name"]: row for row in sample["missing"]}


class Store:
    """Reads a record as any other program would: with SQLite, read-only."""

    def __init__(self, directory):
        files = sorted(Path(directory).rglob("*.sqlite"))
        assert len(files) == 1, f"one record expected below {directory}: {files}"
        self.file = files[0]
        self.connection = sqlite3.connect(f"file:{self.file}?mode=ro", uri=True, timeout=5)
        self.connection.row_factory = sqlite3.Row

    def rows(self, query, *arguments):
        return [dict(row) for row in self.connection.execute(query, arguments)]

    def windows(self, series):
        return self.rows("SELECT * FROM v_window WHERE series = ? ORDER BY unix_ms", series)

    def origins(self, series):
        query = (
            "SELECT o.since_unix_ms, o.level, o.source, o.note FROM origin o JOIN series s ON s.id = o.series_id "
            "WHERE s.name = ? ORDER BY o.since_unix_ms, o.id"
        )
        return self.rows(query, series)

    def integrity(self):
        return self.connection.execute("PRAGMA integrity_check").fetchone()[0]


def without_rights(*command):
    """A command line that runs `command` as nobody, without any capability."""
    return [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
        "--no-new-privs",
        *map(str, command),
    ]


def listing(directory):
    """Every file below a directory with what changes when it is written: for before/after comparisons."""
    found = {}
    for path, directories, files in os.walk(directory):
        for name in directories + files:
            full = os.path.join(path, name)
            status = os.lstat(full)
            found[full] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino)
    return found
