#!/usr/bin/env bash
# What `make demo` runs: examples/train_digits.py under `rankscope run`, in a cgroup of its own with a memory limit
# of 512 MiB and 1.5 CPUs where this machine lets us make one, else without. Arguments go to the training program.
# Ends with the job's exit code; the cgroup is removed.
set -euo pipefail
cd "$(dirname "$0")/.."
rankscope=${RANKSCOPE_BIN:-target/release/rankscope}
python=${PYTHON:-.venv/bin/python}
memory_mib=512
. examples/limits.sh

trap remove_groups EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

limit

code=0
inside "$rankscope" run -- "$python" examples/train_digits.py "$@" || code=$?
echo >&2
echo "demo: the same place, described by \`rankscope scope\`:" >&2
inside "$rankscope" scope || true
exit "$code"
