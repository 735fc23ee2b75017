# Each works from a fresh clone:
#   make demo [LEAK=1]   a small training job in a limited cgroup, under `rankscope run`
#   make test            everything; needs root and cgroup v1 for the tests with real containers
#   make lint            formatting and lints, as in CI
#   make bench           what a sample costs, beside psutil and beside bare reads
PYTHON ?= python3
CARGO ?= cargo
VENV := .venv

.PHONY: demo test lint bench tools
.DEFAULT_GOAL := test

demo: $(VENV)/ready
	$(CARGO) build --release --quiet
	@PYTHON=$(VENV)/bin/python examples/demo.sh $(if $(LEAK),--leak) $(DEMO_ARGS)

test: $(VENV)/ready tools
	$(CARGO) test --workspace
	$(CARGO) build --workspace
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

# What tests and benchmarks run beside Python and Rust: installed where that is possible, else named.
tools:
	@tests/tools.sh strace:strace lxcfs:lxcfs ip:iproute2 setpriv:util-linux cc:gcc
