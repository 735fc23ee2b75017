#!/usr/bin/env bash
# What `make demo-mlflow` runs: a real MLflow server on loopback, and examples/train_digits.py, which logs its loss there
# by itself. `rankscope run` finds that run and writes beside the loss what the job uses. The job gets a cgroup of its own
# where this machine lets us make one. Arguments go to the training program. The server is stopped at the end, or after
# Enter where somebody sits at the terminal.
set -euo pipefail
cd "$(dirname "$0")/.."
rankscope=${RANKSCOPE_BIN:-target/release/rankscope}
python=${PYTHON:-.venv/bin/python}
# Importing MLflow takes some 130 MB; with --leak the job still ends short of the limit.
memory_mib=640
. examples/limits.sh
[ -x "$rankscope" ] || { echo "demo: $rankscope is not there: cargo build --release, or set RANKSCOPE_BIN" >&2; exit 1; }

data=$(mktemp -d "${TMPDIR:-/tmp}/rankscope-demo-mlflow.XXXXXX")
server=

stop() {
    remove_groups
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

# Below the ports that the kernel gives to outgoing connections, one of which could take it before the server does.
port=$("$python" - << 'EOF'
import random, socket
while True:
    port = random.randrange(20_000, 32_000)
    with socket.socket() as sock:
        if sock.connect_ex(("127.0.0.1", port)):
            print(port)
            break
EOF
)
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

limit
code=0
# What rankscope and the job say on stderr is kept, too: the link to the run is in it.
{
    MLFLOW_TRACKING_URI=$uri MLFLOW_DISABLE_TELEMETRY=true inside "$rankscope" run --window 2 --store "$data/runs" -- \
        "$python" examples/train_digits.py --mlflow "$@" 2>&1 >&3 | tee "$data/summary" >&2
} 3>&1 || code=$?
url=$(awk '$1 == "mlflow" { print $2; exit }' "$data/summary")
[ -n "$url" ] || { echo "demo: no run came to be on the server" >&2; exit "$((code ? code : 1))"; }

cat >&2 << EOF

demo: the job's own run: $url
  1. System metrics: the section system/rank_0 is this job (its container and its processes), system/node_… the machine
  2. there, any chart: ⋮, Configure, X-axis "Metric", system/rank_0/training_step: memory over the steps of the training
  3. Model metrics: loss and accuracy, as the script logged them. Artifacts: rankscope/report.html, the job on one page
EOF
if [ -t 0 ] && [ -t 2 ]; then
    read -rp "demo: server and record stay until you press Enter " _ || true
else
    echo "demo: not in a terminal, so server and record are removed now; there they stay until you press Enter" >&2
fi
exit "$code"
