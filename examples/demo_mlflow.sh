#!/usr/bin/env bash
# What `make demo-mlflow` runs: a real MLflow server on loopback, and examples/train_digits.py, which logs its loss there
# by itself. `rankscope run` finds that run and writes beside the loss what the job uses. Arguments go to the training
# program. The server is stopped at the end, or after Enter where somebody sits at the terminal.
set -euo pipefail
cd "$(dirname "$0")/.."
rankscope=${RANKSCOPE_BIN:-target/release/rankscope}
python=${PYTHON:-.venv/bin/python}

data=$(mktemp -d "${TMPDIR:-/tmp}/rankscope-demo-mlflow.XXXXXX")
server=

stop() {
    # The server and the workers it has started; they are a process group of their own.
    if [ -n "$server" ]; then
        kill -TERM -- "-$server" 2> /dev/null || true
        wait "$server" 2> /dev/null || true
    fi
    rm -rf "$data"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
uri=http://127.0.0.1:$port
echo "demo: starting an MLflow server at $uri (some 10 s)" >&2
set -m
MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false "$python" -m mlflow server --workers 1 --host 127.0.0.1 --port "$port" \
    --backend-store-uri "sqlite:///$data/mlflow.db" --artifacts-destination "$data/artifacts" \
    > "$data/server.log" 2>&1 < /dev/null &
server=$!
set +m

healthy() {
    "$python" - "$uri/health" << 'EOF' 2> /dev/null
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=2)
EOF
}
for _ in $(seq 300); do
    healthy && break
    kill -0 "$server" 2> /dev/null || { cat "$data/server.log" >&2; exit 1; }
    sleep 0.2
done
healthy || { echo "demo: the server does not answer" >&2; tail -n 20 "$data/server.log" >&2; exit 1; }

code=0
MLFLOW_TRACKING_URI=$uri MLFLOW_DISABLE_TELEMETRY=true "$rankscope" run --window 2 --store "$data/runs" -- \
    "$python" examples/train_digits.py --mlflow "$@" 2> >(tee "$data/summary" >&2) || code=$?
url=$(awk '$1 == "mlflow" { print $2; exit }' "$data/summary")

cat >&2 << EOF

demo: the job's own run: ${url:-none was found}
  1. System metrics: a section for the rank (its container, its processes) and one for the node it shares
  2. Model metrics: loss and accuracy, as the script logged them; X axis "Relative time" puts them beside the memory
  3. Artifacts: rankscope/scopes.json says of each number whose it is and which file it came from
EOF
if [ -t 0 ] && [ -t 2 ]; then
    read -rp "demo: the server runs until you press Enter " _ || true
fi
exit "$code"
