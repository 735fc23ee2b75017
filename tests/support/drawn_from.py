"""What a page of `rankscope report` has to show, by the record that it was drawn from."""

import itertools
import sqlite3

import pytest

CACHE = "container_memory_page_cache_megabytes"
FULL_NUMBER = 2e-4  # five digits of data, and what a merge of floats loses


class Store:
    """What a record says of the stretch that one point stands for, asked in another way than the report asks."""

    def __init__(self, record, track):
        self.db = sqlite3.connect(f"file:{record}?mode=ro", uri=True)
        self.times = list(itertools.accumulate(track["times"]))
        self.tiers = track["tiers"]

    def expect(self, series, time):
        if series == CACHE:
            file, shmem = (
                self.expect(f"container_memory_{kind}_megabytes", time)[0] for kind in ("file", "shmem")
            )
            value = max(0, file - shmem)
            return value, value, value
        if series.endswith("_megabytes_per_second") and series.startswith("container_io_"):
            counter = series.removesuffix("_per_second")
            at = self.times.index(time)
            (now, _, _), (then, _, _) = self.expect(counter, time), self.expect(counter, self.times[at - 1])
            rate = (now - then) / ((time - self.times[at - 1]) / 1000)
            return rate, rate, rate
        at = self.times.index(time)
        tier = next(name for name, until, _ in self.tiers if time <= until)
        table, value = tier[:-1], "value" if tier == "ticks" else "mean"
        low, high, last = ("value",) * 3 if tier == "ticks" else ("min", "max", "last")
        weight = "1" if tier == "ticks" else "n"
        moment = "unix_ms" if tier == "ticks" else "last_unix_ms"
        rows = self.db.execute(
            f"""SELECT v.{value}, v.{low}, v.{high}, v.{last}, {weight}, s.kind FROM {table} t
            JOIN {table}_value v ON v.{table}_id = t.id JOIN series s ON s.id = v.series_id
            WHERE s.name = ? AND t.{moment} > ? AND t.{moment} <= ? ORDER BY t.id""",
            (series, self.times[at - 1] if at else 0, time),
        ).fetchall()
        assert rows, (series, time)
        if rows[0][5] != "gauge":
            return (rows[-1][3],) * 3
        mean = sum(row[0] * row[4] for row in rows) / sum(row[4] for row in rows)
        return mean, min(row[1] for row in rows), max(row[2] for row in rows)


def close_to(value):
    return pytest.approx(value, rel=FULL_NUMBER, abs=1e-6)
