# Each works from a fresh clone:
#   make demo [LEAK=1]   a small training job in a limited cgroup, under `rankscope run`
#   make demo-mlflow     [LEAK=1] the same job logs to a real MLflow server, and its run gets rankscope's numbers
#   make test            everything; needs root and cgroup v1 for the tests with real containers
#   make lint            formatting and lints, as in CI
#   make bench           what a sample costs, beside psutil and beside bare reads
PYTHON ?= python3
CARGO ?= cargo
VENV := .venv
BUILT := $(or $(CARGO_TARGET_DIR),target)/release/rankscope

.PHONY: demo demo-mlflow test lint bench tools
.DEFAULT_GOAL := test

demo: $(VENV)/ready
	$(CARGO) build --release --quiet
	@RANKSCOPE_BIN=$(BUILT) PYTHON=$(VENV)/bin/python examples/demo.sh $(if $(LEAK),--leak) $(DEMO_ARGS)

demo-mlflow: $(VENV)/mlflow-ready
	$(CARGO) build --release --quiet
	@RANKSCOPE_BIN=$(BUILT) PYTHON=$(VENV)/bin/python examples/demo_mlflow.sh $(if $(LEAK),--leak) $(DEMO_ARGS)

test: $(VENV)/mlflow-ready tools
	$(CARGO) test --workspace
	$(CARGO) build --workspace --bins --examples
	$(VENV)/bin/pytest tests $(PYTEST_ARGS)

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
	@echo "installing MLflow into $(VENV): 850 MB, a minute or more"
	$(VENV)/bin/pip install --quiet --requirement tests/requirements-mlflow.txt
	@touch $@

# What tests and benchmarks run beside Python and Rust: installed where that is possible, else named.
tools:
	@tests/tools.sh strace:strace ip:iproute2 setpriv:util-linux cc:gcc jq:jq
