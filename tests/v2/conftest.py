"""One guest for all tests here: it is booted once, and each test looks at what one check left behind."""

import os
from pathlib import Path

import guest as machine
import pytest

REPO = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def guest(tmp_path_factory):
    binary = Path(os.environ.get("RANKSCOPE_BIN") or REPO / "target/release/rankscope")
    assert binary.is_file(), f"no {binary}: run `make test-v2`"
    return machine.boot(binary, tmp_path_factory.mktemp("guest"))
