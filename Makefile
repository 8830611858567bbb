# Needs make and Python 3.11 or newer; everything else is installed into .venv by the first target that wants it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
ARGS ?=
TARGETS ?=
PYTHONS ?=
NUMBAS ?=
PIP_ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: run test check test-all test-bridge bridge-env bench-bridge test-poison test-targets test-pythons test-numbas test-aarch64 fuzz fuzz-blends mutation lint bench bench-against bench-loops bench-writes bench-numbers bench-sweep bench-env docs docs-serve release lines help clean

run: $(VENV)/examples.stamp ## train a network on scanned digits: the main job
	$(BIN)/python examples/digits.py $(ARGS)

test: $(VENV)/test.stamp ## run all tests; ARGS="-k name" chooses
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

check: $(VENV)/test.stamp ## run the fast tests of every room, in a minute on two idle cores; ARGS="tests/codegen/lower" chooses
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow" --durations=5 --durations-min=1 $(ARGS)

test-all: $(VENV)/test.stamp ## run all tests in every way below, some hours, and tell what ran, how long and what failed
	$(BIN)/python tests/run_suite.py all -n $(JOBS) $(ARGS)

test-poison: $(VENV)/test.stamp ## run all tests with the memory of results and temporaries filled with NaN before each call
	$(BIN)/python tests/run_suite.py poison -n $(JOBS) $(ARGS)

test-targets: $(VENV)/test.stamp ## run all tests and more random programs on code for each processor; TARGETS="nehalem native" chooses
	$(BIN)/python tests/run_suite.py targets --only "$(TARGETS)" -n $(JOBS) $(ARGS)

test-pythons: $(VENV)/test.stamp ## run all tests under each Python that is found; PYTHONS="3.12 3.13" chooses
	$(BIN)/python tests/run_suite.py pythons --only "$(PYTHONS)" -n $(JOBS) $(ARGS)

fuzz: $(VENV)/test.stamp ## run random programs against NumPy, random loops against their scalar form, traced programs against NumPy; ARGS="--programs 20000 --seed 7", ARGS="--pairs --programs 30000"
	$(BIN)/python -m tests.support.corners --jobs $(JOBS) $(ARGS)
	$(BIN)/python -m tests.support.vector_loops $(ARGS)
	$(BIN)/python -m tests.support.plain_trials $(ARGS)

fuzz-blends: $(VENV)/test.stamp ## run random programs of everything against the interpreted mode; ARGS="--programs 2000 --seed 7"
	$(BIN)/python -m tests.support.blends --jobs $(JOBS) $(ARGS)

mutation: $(VENV)/test.stamp ## break the compiler on purpose in hundreds of places, report what the tests overlook; hours; ARGS="plan" chooses
	$(BIN)/python -m mutation --jobs $(JOBS) $(ARGS)

test-numbas: ## run all tests with the oldest numba that graphc takes, and others; NUMBAS="0.65.1" chooses
	$(PYTHON) tests/run_suite.py numbas --only "$(NUMBAS)" -n $(JOBS) $(ARGS)

test-bridge: ## run the tests under PyTensor and PyMC, which want an older numba, in an environment of their own
	$(PYTHON) tests/run_suite.py bridge $(ARGS)

bridge-env: ## install PyTensor, PyMC and nutpie into the environment of `make test-bridge`
	$(PYTHON) tests/run_suite.py bridge --version

bench-bridge: bridge-env ## measure PyMC's models over graphc and over PyTensor, write the table and the picture of docs/pymc.md
	$(PYTHON) -m benchmarks.bridge $(ARGS)

# The tests of what depends on the processor, but for one: the emulator's list of mappings joins those that the host joins.
ON_AARCH64 := $(patsubst %,tests/%,codegen/link codegen/call/test_entry.py functions/test_calls.py functions/test_function.py \
	test_seeds.py codegen/vecmath/test_vecmath.py codegen/gemm/test_gemv.py codegen/gemm/test_products.py \
	codegen/transform/test_parallelize.py codegen/transform/test_nontemporal.py codegen/threads \
	codegen/call/test_result_memory.py codegen/lower/test_steps.py) \
	--deselect tests/codegen/link/test_image.py::test_nothing_is_both_written_and_run_and_all_is_unmapped

test-aarch64: ## run the tests that depend on the processor on an emulated 64-bit Arm; ARGS="tests/functions/test_calls.py" chooses
	.ci/aarch64 -m pytest -n $(JOBS) $(or $(ARGS),$(ON_AARCH64))

lint: $(VENV)/lint.stamp ## check style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/bench.stamp ## measure graphc and its peers, write docs/benchmarks.md and README's figures; ARGS="--quick" is short, --help tells more
	$(BIN)/python -m benchmarks $(ARGS)

bench-against: $(VENV)/bench.stamp ## compare with another checkout, workload by workload; ARGS="../before mlp-step --rounds 9"
	$(BIN)/python -m benchmarks.against $(ARGS)

bench-loops: $(VENV)/bench.stamp ## measure programs of many steps alone, write their section of docs/benchmarks.md
	$(BIN)/python -m benchmarks --section loops --fresh --peers graphc,numba,jax $(ARGS)

bench-writes: $(VENV)/bench.stamp ## measure NumPy programs that write into arrays alone, write their section of docs/benchmarks.md
	$(BIN)/python -m benchmarks --section writes --fresh --peers graphc,numpy,numba,jax $(ARGS)

bench-numbers: $(VENV)/bench.stamp ## measure nets, random numbers, factorisations and order alone, write their section of docs/benchmarks.md
	$(BIN)/python -m benchmarks --section numbers --fresh --peers graphc,numpy,numba,jax,torch $(ARGS)

bench-sweep: $(VENV)/bench.stamp ## measure programs drawn at random, write docs/sweep.md; ARGS="--programs 60 --seed 7"
	$(BIN)/python -m benchmarks.sweep --docs docs/sweep.md $(ARGS)

bench-env: ## install JAX, PyTensor and PyTorch beside, for `make bench` to compare with
	$(PYTHON) -m venv benchmarks/.venv
	benchmarks/.venv/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r benchmarks/peers.txt

docs: $(VENV)/docs.stamp ## build the site from docs/ and the docstrings into build/site, static files; fails on a broken link
	$(BIN)/python -m book $(ARGS)

docs-serve: $(VENV)/docs.stamp ## build the site and serve it at http://localhost:8000; ARGS="--port 8080"
	$(BIN)/python -m book --serve $(ARGS)

release: $(BIN)/python ## build the distributions, check them in clean environments of every Python; ARGS="--pythons 3.12" chooses
	$(BIN)/python -m release $(ARGS)

lines: ## count the lines of every module, longest first
	@find graphc -name '*.py' | xargs wc -l | sort -rn

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 21

clean: ## remove the environment and everything generated
	rm -rf $(VENV) .venv-3.* .aarch64 build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'graphc needs Python 3.11 or newer; name one with make PYTHON=...'; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp for each group of optional dependencies: nothing is installed twice. An editable install compiles no bytecode, and
# where PYTHONDONTWRITEBYTECODE is set nobody else would: every process would take three times as long to import graphc.
# Nor are parts of kernels compiled before: a wheel has them. They take seven seconds, once for the sources as they are.
$(VENV)/%.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	$(BIN)/python -m compileall -q graphc
	$(BIN)/python -m release.parts
	touch $@
