# Each works from a fresh clone:
#   make demo [LEAK=1]   a small training job in a limited cgroup, under `rankscope run`
#   make demo-mlflow     the same job logs to a real MLflow server, and its run gets rankscope's numbers
#   make test            everything; needs root and cgroup v1 for the tests with real containers
#   make test-v2         a virtual machine with a cgroup v2 kernel (fetched once), and the checks that run in it
#   make test-v2-old     the same with a kernel that keeps less (5.10)
#   make lint            formatting and lints, as in CI
#   make bench           what a sample costs, beside psutil and beside bare reads
PYTHON ?= python3
CARGO ?= cargo
VENV := .venv

.PHONY: demo demo-mlflow test test-v2 test-v2-old lint bench tools
.DEFAULT_GOAL := test

demo: $(VENV)/ready
	$(CARGO) build --release --quiet
	@PYTHON=$(VENV)/bin/python examples/demo.sh $(if $(LEAK),--leak) $(DEMO_ARGS)

demo-mlflow: $(VENV)/mlflow-ready
	$(CARGO) build --release --quiet
	@PYTHON=$(VENV)/bin/python examples/demo_mlflow.sh $(DEMO_ARGS)

test: $(VENV)/mlflow-ready tools
	$(CARGO) test --workspace
	$(CARGO) build --workspace --bins --examples
	$(VENV)/bin/pytest tests $(PYTEST_ARGS)

test-v2: $(VENV)/ready
	@tests/tools.sh qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio mke2fs:e2fsprogs cc:gcc strip:binutils
	@tests/v2/fetch.sh $(V2_SUITE)
	$(CARGO) build --release --quiet --bin rankscope
	V2_SUITE=$(V2_SUITE) $(VENV)/bin/pytest tests/v2 --timeout 600 $(PYTEST_ARGS)

test-v2-old:
	$(MAKE) test-v2 V2_SUITE=bullseye-security

lint: $(VENV)/ready
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

bench: $(VENV)/ready tools
	$(CARGO) build --release --quiet --bins --example tight_loop
	$(VENV)/bin/python bench/sample_cost.py $(BENCH_ARGS)

$(VENV)/ready: tests/requirements.txt examples/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --requirement tests/requirements.txt --requirement examples/requirements.txt
	@touch $@

# A real MLflow server and its client: 850 MB, so apart.
$(VENV)/mlflow-ready: $(VENV)/ready tests/requirements-mlflow.txt
	$(VENV)/bin/pip install --quiet --requirement tests/requirements-mlflow.txt
	@touch $@

# What tests and benchmarks run beside Python and Rust: installed where that is possible, else named.
tools:
	@tests/tools.sh strace:strace ip:iproute2 setpriv:util-linux cc:gcc jq:jq
