"""Hosts as people met them (fixtures/hosts): the real binary on each tree, compared with what is right there."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.cli import by_name, check_sample, check_scope, missing

HOSTS = Path(__file__).resolve().parent.parent / "fixtures" / "hosts"
CASES = sorted(path.parent for path in HOSTS.glob("*/expected.json"))
# Nothing live may be read of a tree, the environment included.
ENVIRONMENT = {**os.environ, "NODE_NAME": "the-machine-of-the-test", "RANK": "3"}


def trees(case):
    return [part for moment in ("t0", "t1") if (case / moment).is_dir() for part in ("--root", case / moment)]


def answer(rankscope, command, case, arguments):
    done = rankscope.run(command, "--json", *arguments, *trees(case), check=0, env=ENVIRONMENT, timeout=30)
    assert "panicked" not in done.stderr
    assert "the-machine-of-the-test" not in done.stdout
    return json.loads(done.stdout)


def note_of(row):
    return row["note"] or ""


def check_row(row, expected):
    """Only what the case speaks of is compared."""
    approximately = pytest.approx(expected["value"], rel=1e-9, abs=expected.get("tolerance", 1e-9))
    assert row["value"] == approximately, row
    for key in ("level", "scope", "source", "identity", "subject"):
        if key in expected:
            assert row[key] == expected[key], row
    if expected.get("note", ...) is None:
        assert row["note"] is None, row
    for fragment in expected.get("note") or []:
        assert fragment in note_of(row), row


def check_missing(row, expected):
    assert row["reason"] == expected["reason"], row
    for fragment in expected.get("detail", []):
        assert fragment in row["detail"], row


def test_every_case_is_whole():
    assert len(CASES) > 100
    for case in HOSTS.iterdir():
        assert (case / "origin.md").is_file(), case
        assert (case / "expected.json").is_file(), case
        assert (case / "t0").is_dir(), case
        expected = json.loads((case / "expected.json").read_text())
        assert expected.keys() <= {
            "arguments",
            "sample_arguments",
            "series",
            "missing",
            "never",
            "scope",
        }, case
        assert expected["series"] or expected["missing"], case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(rankscope, case):
    expected = json.loads((case / "expected.json").read_text())
    both, only_sample = expected.get("arguments", []), expected.get("sample_arguments", [])
    sample = answer(rankscope, "sample", case, both + only_sample)
    check_sample({**sample, "time_unix_ms": sample["time_unix_ms"] or 0})
    rows, gaps = by_name(sample), missing(sample)
    for name, wanted in expected["series"].items():
        assert name in rows, gaps.get(name, f"{name} is neither there nor missing")
        check_row(rows[name], wanted)
    for name, wanted in expected["missing"].items():
        assert name in gaps, rows.get(name, f"{name} is neither there nor missing")
        check_missing(gaps[name], wanted)
    for name in expected.get("never", []):
        assert name not in rows
        assert name not in gaps

    scope = check_scope(answer(rankscope, "scope", case, both))
    wanted = expected.get("scope", {})
    for key, value in wanted.get("environment", {}).items():
        given = scope["environment"][key]
        assert given == value or (key == "sandbox" and given is not None and value in given), (key, given)
    if "thread_hint" in wanted:
        assert scope["thread_hint"] == wanted["thread_hint"]
    families = {row["family"]: row for row in scope["families"]}
    for name, fields in wanted.get("families", {}).items():
        for key, value in fields.items():
            given = families[name][key]
            assert given == value or (key == "note" and value in (given or "")), (name, key, given)


def test_text_for_people_is_given_too(rankscope):
    """The tables of `sample` and `scope` on a tree end well."""
    for command in ("sample", "scope"):
        done = rankscope.run(command, *trees(HOSTS / "c02a-host-namespace"), check=0)
        assert "536.9" in done.stdout, done.stdout


def test_what_could_not_be_read_is_kept_by_a_snapshot(rankscope, tmp_path):
    """A file that gives an error gives the same reason from the tree."""
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    tree = tmp_path / "tree"
    tree.mkdir()
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.name.startswith("pytest-of-"):
            parent.chmod(0o755)
            break
        parent.chmod(0o755)
    tree.chmod(0o777)
    binary = tmp_path / "rankscope"
    binary.write_bytes(rankscope.path.read_bytes())
    binary.chmod(0o755)
    # pid 1 is another user's: its io file is denied, live and from the tree.
    command = [*as_nobody, str(binary), "snapshot", "--pid", "1", str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    meta = json.loads((tree / "rankscope-tree.json").read_text())
    assert meta["errors"].get("/proc/1/io") == "EACCES", (done.stderr, meta["errors"])
    recorded = rankscope.run("sample", "--json", "--root", tree, "--root", tree, check=0)
    row = missing(json.loads(recorded.stdout))["process_read_megabytes_per_second"]
    assert row["reason"] == "denied", row
