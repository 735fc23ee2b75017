"""NVIDIA's management library without a GPU (crates/fake-nvml), for processes started with its environment."""

import mmap
import os
import shutil
import struct
from pathlib import Path
from typing import ClassVar

SCENARIOS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "nvml"
RECORD = 256
MOST_GPUS = 16


class Nvml:
    """One scenario, with a state that the test may change while it is in use (see crates/fake-nvml/src/state.rs)."""

    FIELDS: ClassVar = {
        "utilization": (0, "I"),
        "memory_controller": (4, "I"),
        "power_mw": (8, "I"),
        "sm_clock": (12, "I"),
        "memory_used": (16, "Q"),
        "clock_reasons": (24, "Q"),
        "ecc_uncorrected": (32, "Q"),
        "code": (40, "I"),
        "hangs": (44, "I"),
        "xids": (48, "I"),
        "xid": (52, "I"),
        "temperature": (56, "I"),
    }

    def __init__(self, library, directory, scenario, without=()):
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.library = directory / "libnvidia-ml.so.1"
        real = directory / "libnvidia-ml.so.550.54.15"
        shutil.copy(library, real)
        for symbol in without:
            remove_symbol(real, symbol)
        self.library.symlink_to(real.name)
        self.scenario = directory / "scenario.toml"
        known = SCENARIOS / f"{scenario}.toml"
        self.scenario.write_text(scenario if "\n" in scenario else known.read_text())
        self.log = directory / "calls"
        path = directory / "state"
        path.write_bytes(b"\xff" * RECORD * MOST_GPUS)
        with path.open("r+b") as file:
            self.state = mmap.mmap(file.fileno(), 0)

    def set(self, gpu=0, **values):
        for name, value in values.items():
            offset, kind = self.FIELDS[name]
            struct.pack_into(f"={kind}", self.state, gpu * RECORD + offset, value)

    def processes(self, gpu, *processes):
        """(pid, bytes) of each."""
        at = gpu * RECORD
        for n, (pid, memory) in enumerate(processes):
            struct.pack_into("=IIQ", self.state, at + 64 + 16 * n, pid, 0, memory)
        struct.pack_into("=I", self.state, at + 60, len(processes))

    @property
    def environment(self):
        """By RANKSCOPE_NVML_LIB: this machine shows no sign of a GPU."""
        return {**os.environ, **self.variables, "RANKSCOPE_NVML_LIB": str(self.library)}

    @property
    def variables(self):
        return {
            "FAKE_NVML": str(self.scenario),
            "FAKE_NVML_STATE": str(self.directory / "state"),
            "FAKE_NVML_LOG": str(self.log),
            "LD_LIBRARY_PATH": str(self.directory),
        }

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


def remove_symbol(library, symbol):
    """Renames it in the table of names, so that nobody finds it: a driver that is older than the function."""
    name = b"\0" + symbol.encode() + b"\0"
    content = library.read_bytes()
    assert name in content, symbol
    library.write_bytes(content.replace(name, b"\0" + b"x" + symbol.encode()[1:] + b"\0"))
