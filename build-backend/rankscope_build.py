"""Builds the wheel: maturin makes the extension, and this puts the command beside it.

The command is a program of its own, not a Python script: it starts in milliseconds, has one thread when it deals with
signals, and is its own helper process. maturin builds either a module or a program; programs that are there already
are taken from the wheel's data directory.
"""

import json
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import get_requires_for_build_sdist, get_requires_for_build_wheel

__all__ = [
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_wheel",
]

# As in pyproject.toml.
SCRIPTS = Path("build/data/scripts")


def build_sdist(sdist_directory, config_settings=None):
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.build_sdist(sdist_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    # maturin wants the folder, whatever is in it.
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Settings: `profile=dev` builds faster, and what is built runs slower; `compatibility=pypi` gives the wheel a
    tag for all machines with a C library like this one's.
    """
    settings = config_settings or {}
    profile = settings.get("profile", "release")
    build_command(profile)
    arguments = f"--profile {profile} --compatibility {settings.get('compatibility', 'off')}"
    return maturin.build_wheel(wheel_directory, {"build-args": arguments}, metadata_directory)


def build_command(profile):
    # With the module named too, what both need is built once: maturin builds it with the same features afterwards.
    packages = ["--package", "rankscope", "--package", "rankscope-py"]
    cargo = ["cargo", "build", "--locked", *packages, "--bin", "rankscope"]
    messages = subprocess.run(
        [*cargo, "--profile", profile, "--message-format", "json-render-diagnostics"],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    programs = [program for line in messages.splitlines() if (program := json.loads(line).get("executable"))]
    shutil.rmtree(SCRIPTS, ignore_errors=True)
    SCRIPTS.mkdir(parents=True)
    shutil.copy2(programs[0], SCRIPTS)
