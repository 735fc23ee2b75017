# Each works from a fresh clone:
#   make demo [LEAK=1]   a small training job in a limited cgroup, under `rankscope run`
#   make demo-mlflow     [LEAK=1] the same job logs to a real MLflow server, and its run gets rankscope's numbers
#   make test            everything; needs root and cgroup v1 for the tests with real containers. The tests of MLflow
#                        run with MLflow 3 (.venv) and once more with MLflow 2 (.venv-mlflow2)
#   make test-mlflow2    only the latter
#   make test-torch      Lightning, Transformers, torchrun, torch's and MPI's process groups, and a validation by
#                        torchmetrics that `diagnose` must see through, with the real packages (6 GB)
#   make test-rfdetr     advise and its catalogue against RF-DETR's own classes (8 wheels, none is installed)
#   make test-v2         a virtual machine with a cgroup v2 kernel (fetched once), and the checks that run in it
#   make test-v2-old     the same with a kernel that keeps less (5.10)
#   make lint            formatting and lints, the fuzz targets included, as in CI
#   make fuzz            every fuzz target for two minutes (FUZZ_SECONDS=n: for n seconds)
#   make bench           what a sample costs, beside psutil and beside bare reads; with up to 5,000 processes in the job,
#                        and with GPUs of a faked driver; what diagnose costs, itself and the job that it looks at;
#                        what a job loses of its time; at the end one boot of 5.10, as make test-v2-old
#   make bench-diagnose  which cause is named for programs that really have one, three seeds each; first whether they have
#                        it; then the same with those of other kinds and those that were held out (SUITE=targets,
#                        SUITE=kinds, SUITE=heldout, SUITE=blind, SUITE=fresh: only one of them)
#   make bench-ranks     512 simulated ranks (RANKS=n) and a default MLflow server, beside the pattern of MLflow's monitor
#   make bench-report    what a page of 16 ranks over 100 hours costs (RANKS=n HOURS=n)
#   make bench-crash     200 rounds of kills at random points, where `make test` plays 20 (CRASH_ROUNDS=n)
PYTHON ?= python3
CARGO ?= cargo
VENV := .venv
VENV2 := .venv-mlflow2
VENV_TORCH := .venv-torch
BUILT := $(or $(CARGO_TARGET_DIR),target)/release/rankscope

# Three files at a time, also on two cores: most tests wait for something most of the time. conftest.py has the order.
TOGETHER := --numprocesses $(or $(TEST_JOBS),3) --dist loadfile --no-loadscope-reorder

# Outside of the checkout's build, so that it outlives `cargo clean`.
FUZZ_TOOLS := .cache/cargo-fuzz
FUZZ_TARGETS := keyed limits mountinfo resolver tables process node tree advise source

.PHONY: demo demo-mlflow test test-mlflow2 test-torch test-rfdetr test-v2 test-v2-old lint bench bench-crash bench-diagnose bench-ranks fuzz tools wheel bench-report
.DEFAULT_GOAL := test

demo: $(VENV)/ready
	$(CARGO) build --release --quiet
	@RANKSCOPE_BIN=$(BUILT) PYTHON=$(VENV)/bin/python examples/demo.sh $(if $(LEAK),--leak) $(DEMO_ARGS)

demo-mlflow: $(VENV)/mlflow
	$(CARGO) build --release --quiet
	@RANKSCOPE_BIN=$(BUILT) PYTHON=$(VENV)/bin/python examples/demo_mlflow.sh $(if $(LEAK),--leak) $(DEMO_ARGS)

test: $(VENV)/ready $(VENV)/mlflow $(VENV)/ray tools wheel
	$(CARGO) test --workspace
	$(CARGO) build --workspace --bins --examples
	$(CARGO) build --package fake-nvml
	$(VENV)/bin/pytest tests -m "not large" $(TOGETHER) $(PYTEST_ARGS)
	$(MAKE) test-mlflow2
	$(MAKE) fuzz FUZZ_SECONDS=$(or $(FUZZ_SECONDS),20)

# What depends on the server's and the client's version. Faults, kills and crowds are played before MLflow 3 alone.
WITH_MLFLOW2 := $(patsubst %,tests/test_%.py,mlflow_adoption mlflow_attached mlflow_client mlflow_delivery mlflow_install \
    mlflow_training mlflow_twice audit python_mlflow)

# The first line fails where this MLflow is not there; pytest would skip.
test-mlflow2: $(VENV2)/ready
	$(VENV2)/bin/python -c 'import mlflow; assert mlflow.__version__.startswith("2."), mlflow.__version__'
	$(CARGO) build --workspace --bins --examples
	$(VENV2)/bin/pip install --quiet --no-deps --config-settings profile=dev .
	$(VENV2)/bin/pytest $(WITH_MLFLOW2) $(TOGETHER) $(PYTEST_ARGS)

WITH_TORCH := $(patsubst %,tests/test_%.py,diagnose_causes frameworks ranks tracking_groups)

# Tests with the marker `large`, which `make test` leaves out. The first line fails where one of these is not there.
test-torch: $(VENV_TORCH)/ready
	$(VENV_TORCH)/bin/python -c 'import accelerate, lightning, mpi4py, torch, torchmetrics, torchvision, transformers'
	$(CARGO) build --bin rankscope
	$(CARGO) build --package fake-nvml
	$(VENV_TORCH)/bin/pip install --quiet --no-deps --config-settings profile=dev .
	$(VENV_TORCH)/bin/pytest -m large $(WITH_TORCH) $(PYTEST_ARGS)

# pydantic and PyYAML are there with MLflow.
test-rfdetr: $(VENV)/mlflow
	$(VENV)/bin/python tests/rfdetr_catalogue.py .cache/rfdetr
	$(CARGO) build --bin rankscope
	$(VENV)/bin/python tests/rfdetr_values.py .cache/rfdetr $(or $(CARGO_TARGET_DIR),target)/debug/rankscope

test-v2: $(VENV)/ready
	@tests/tools.sh qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio mke2fs:e2fsprogs cc:gcc strip:binutils
	@tests/v2/fetch.sh $(V2_SUITE)
	$(CARGO) build --release --quiet --bin rankscope
	RANKSCOPE_BIN=$(abspath $(BUILT)) V2_SUITE=$(V2_SUITE) $(VENV)/bin/pytest tests/v2 --timeout 600 $(PYTEST_ARGS)

test-v2-old:
	$(MAKE) test-v2 V2_SUITE=bullseye-security

lint: wheel
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --manifest-path fuzz/Cargo.toml --all-targets -- -D warnings
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy --strict python/rankscope
	$(VENV)/bin/stubtest --mypy-config-file pyproject.toml rankscope

# No sanitizer: there is no unsafe code where hostile bytes are read, and without one the stable compiler does. What is
# found new goes to .cache; a failing input is named, and kept in fuzz/artifacts.
fuzz: $(FUZZ_TOOLS)/bin/cargo-fuzz
	PATH="$(CURDIR)/$(FUZZ_TOOLS)/bin:$$PATH" $(CARGO) fuzz build --sanitizer none
	$(MAKE) --jobs 2 $(FUZZ_TARGETS:%=fuzz-%)

fuzz-%:
	@PATH="$(CURDIR)/$(FUZZ_TOOLS)/bin:$$PATH"; work=.cache/fuzz/$*; mkdir -p $$work; \
	$(CARGO) fuzz run --sanitizer none $* $$work fuzz/corpus/$* -- -verbosity=0 \
	    -max_total_time=$(or $(FUZZ_SECONDS),120) -timeout=10 -print_final_stats=1 > $$work.log 2>&1 \
	    || { tail -60 $$work.log; exit 1; }; \
	echo "$*: $$(sed -n 's/stat::number_of_executed_units: *//p' $$work.log) inputs"

$(FUZZ_TOOLS)/bin/cargo-fuzz:
	$(CARGO) install cargo-fuzz --version 0.13.2 --locked --quiet --root $(FUZZ_TOOLS)

bench: $(VENV)/mlflow tools
	$(CARGO) build --release --quiet --bins --example tight_loop --example stacks
	$(CARGO) build --release --quiet --package fake-nvml
	RANKSCOPE_BIN=$(BUILT) $(VENV)/bin/python bench/sample_cost.py
	RANKSCOPE_BIN=$(BUILT) $(VENV)/bin/python bench/tree_cost.py
	RANKSCOPE_BIN=$(BUILT) $(VENV)/bin/python bench/gpu_cost.py
	RANKSCOPE_BIN=$(BUILT) $(VENV)/bin/python bench/diagnose_cost.py
	RANKSCOPE_BIN=$(BUILT) $(VENV)/bin/python bench/stacks_cost.py
	RANKSCOPE_BIN=$(BUILT) $(VENV)/bin/python bench/wall_time.py
	$(MAKE) wheel PROFILE=release
	$(VENV)/bin/python bench/in_process.py
	$(MAKE) test-v2-old

bench-diagnose: $(VENV)/ready
	$(CARGO) build --release --quiet --bin rankscope
	$(CARGO) build --release --quiet --package fake-nvml
	for suite in $(or $(SUITE),targets kinds heldout blind fresh); do \
	    matrix="$(VENV)/bin/python bench/diagnose_matrix.py --suite $$suite --library $(dir $(BUILT))libfake_nvml.so"; \
	    $$matrix --truth --duration 5 || exit 1; \
	    $$matrix --rankscope $(BUILT) $(MATRIX_ARGS) || exit 1; \
	done

bench-ranks: $(VENV)/ready $(VENV)/mlflow
	$(CARGO) build --release --quiet --example many_ranks
	PYTHONPATH=tests $(VENV)/bin/python -m support.many_ranks $(dir $(BUILT))examples/many_ranks $(or $(RANKS),512) \
	    $(or $(SECONDS_OF_JOB),180)

bench-report: $(VENV)/ready
	$(CARGO) build --release --quiet --bin rankscope
	RANKSCOPE_BIN=$(BUILT) RANKS=$(or $(RANKS),16) HOURS=$(or $(HOURS),100) $(VENV)/bin/python bench/report_cost.py

bench-crash: $(VENV)/ready $(VENV)/mlflow
	$(CARGO) build --quiet
	RANKSCOPE_CRASH_ROUNDS=$(or $(CRASH_ROUNDS),200) $(VENV)/bin/pytest tests/test_crash.py -s -k random $(PYTEST_ARGS)

# The module and the command, into the environment of the tests. maturin is looked for in PATH.
wheel: $(VENV)/ready
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/pip install --quiet --no-build-isolation --no-deps \
	    --config-settings profile=$(or $(PROFILE),dev) .

$(VENV)/ready: tests/requirements.txt examples/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --requirement tests/requirements.txt --requirement examples/requirements.txt
	@touch $@

# A real MLflow server and its client: 850 MB, so apart.
$(VENV)/mlflow: tests/requirements-mlflow.txt $(VENV)/ready
	@echo "installing MLflow into $(VENV): 850 MB, a minute or more"
	$(VENV)/bin/pip install --quiet --requirement tests/requirements-mlflow.txt
	@touch $@

# Ray and Transformers, without torch: 550 MB more.
$(VENV)/ray: tests/requirements-ray.txt $(VENV)/mlflow
	@echo "installing Ray and Transformers into $(VENV): 550 MB, a minute or more"
	$(VENV)/bin/pip install --quiet --requirement tests/requirements-ray.txt
	@touch $@

$(VENV_TORCH)/ready: tests/requirements-torch.txt
	@echo "installing torch, torchmetrics, Lightning and Transformers into $(VENV_TORCH): 6 GB, some minutes"
	$(PYTHON) -m venv $(VENV_TORCH)
	$(VENV_TORCH)/bin/pip install --quiet --requirement tests/requirements-torch.txt
	@touch $@

# The last of MLflow 2, server and client; it can't live beside MLflow 3.
$(VENV2)/ready: tests/requirements-mlflow2.txt
	@echo "installing MLflow 2 into $(VENV2): 860 MB, a minute or more"
	$(PYTHON) -m venv $(VENV2)
	$(VENV2)/bin/pip install --quiet --requirement tests/requirements-mlflow2.txt
	@touch $@

# What tests and benchmarks run beside Python and Rust: installed where that is possible, else named.
tools:
	@tests/tools.sh strace:strace lxcfs:lxcfs ip:iproute2 setpriv:util-linux cc:gcc jq:jq chromium:chromium
