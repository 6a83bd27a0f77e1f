# The main commands are `make reproduce` and `make test`. Each creates .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
WORKERS ?= auto
MINUTES ?= 10
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# An editable install builds the kernels: when they change, it is made anew.
KERNELS := $(wildcard dendritree/ops/cpu/*.?pp) dendritree/ops/cpu/CMakeLists.txt
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal
# Let Python cache bytecode, whatever the environment says: tests start dozens of interpreters.
unexport PYTHONDONTWRITEBYTECODE

# An environment is of one Python: another one that is asked for must not be passed over in silence.
ifneq ($(origin PYTHON),file)
ifneq ($(wildcard $(BIN)/python),)
VERSION := -c 'import sys; print(*sys.version_info[:2], sep=".")'
ASKED := $(shell $(PYTHON) $(VERSION))
INSTALLED := $(shell $(BIN)/python $(VERSION))
ifneq ($(ASKED),$(INSTALLED))
$(error $(VENV) must have the Python that is asked for: it has $(INSTALLED), $(PYTHON) is $(ASKED). Run `make clean`, or add VENV=.venv-$(ASKED) to keep both)
endif
endif
endif

.PHONY: help reproduce test test-part test-all test-cuda test-devices fuzz sanitize bench docs lint types pytest package clean

help:
	@echo "make reproduce   run the paper's experiments (resumes if interrupted), write reproduction/report.html"
	@echo "make test        lint, types, tests, and a check that both packages install"
	@echo "make test-part PART=layers   the tests of one folder of the library or the lab, such as layers, data, fair or view"
	@echo "make test-all    all tests: also the slow ones, and more random examples"
	@echo "make test-cuda   on a machine with a GPU: tests for CUDA, then a table to paste into an issue; says if there is none"
	@echo "make test-devices  C files on emulated microcontrollers (Debian: installs compilers and emulators); prints a table"
	@echo "make fuzz        random layers, convolutions, norms, neurons, damaged files and stops for MINUTES=10"
	@echo "make sanitize    the fuzzers of layers, convolutions and norms on kernels built with sanitizers for MINUTES=5 each"
	@echo "make bench       time the layer against its control and print the table, about a minute"
	@echo "make docs        build the documentation into site/index.html"
	@echo "make clean       remove .venv and everything built"

reproduce: $(VENV)/run.stamp
	$(BIN)/dendritree reproduce

test: lint types pytest package

docs: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/run.stamp
	$(BIN)/python benchmarks/layer_speed.py --short --out benchmarks/results/layer_speed_short.csv

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

# One torch thread per worker, because there is one worker per core. A worker takes a run of neighboring tests, so that
# the fixtures of a file are created once, and takes over tests from others when it has none left.
pytest: $(VENV)/dev.stamp
	$(PYTEST) -m "not slow" --durations=15

test-part: $(VENV)/dev.stamp
	@test -n "$(PART)" -a -n "$(wildcard tests/*/$(PART)/. tests/lab/*/$(PART)/.)" || { echo "PART must be a folder of tests/library, tests/lab or tests/lab/studies: got '$(PART)'"; exit 2; }
	$(PYTEST) $(wildcard tests/*/$(PART) tests/lab/*/$(PART))

test-all: $(VENV)/dev.stamp
	$(PYTEST) --hypothesis-profile=long
	$(BIN)/python tests/check_package.py --alone

# `constraints.txt` may have installed a CPU build of torch: then the command says so, since all tests would be skipped.
test-cuda: $(VENV)/dev.stamp
	@$(BIN)/python -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "no GPU: torch " + torch.__version__ + " finds no CUDA device; nothing was tested")'
	$(BIN)/python -m pytest -q -n0 -m cuda
	$(BIN)/python benchmarks/gpu.py

# MODELS=FOLDER has trained models, which are otherwise trained: about five minutes.
DEVICES := gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm gcc-avr avr-libc simavr
test-devices: $(VENV)/dev.stamp
	command -v qemu-system-arm simavr > /dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends $(DEVICES))
	$(BIN)/python tests/devices $(if $(MODELS),--models $(MODELS))

# ONLY=KIND SEED=S runs one case again.
fuzz: $(VENV)/dev.stamp
	$(BIN)/python tests/fuzz --minutes $(MINUTES) $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED))

# The minutes are those of each sanitizer.
sanitize: MINUTES = 5
sanitize: $(VENV)/dev.stamp
	$(BIN)/python tests/sanitize.py --minutes $(MINUTES)

package: $(VENV)/dev.stamp
	$(BIN)/python tests/check_package.py

# One `pip install` with the constraints, so that torch is the pinned build for every package that requires it.
# Python compiles what it imports: compiling all 20,000 files here would take a minute. So would resolving with the old
# pip of an older Python, hence the upgrade.
define venv
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dendritree needs Python 3.11 or newer")'
test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
$(PIP) install --no-compile -c constraints.txt pip
endef

$(VENV)/run.stamp: pyproject.toml lab/pyproject.toml constraints.txt $(KERNELS)
	$(venv)
	$(PIP) install --no-compile -c constraints.txt -e . -e ./lab
	$(BIN)/python -m dendritree.ops
	touch $@

$(VENV)/dev.stamp: pyproject.toml lab/pyproject.toml constraints.txt $(KERNELS)
	$(venv)
	$(PIP) install --no-compile -c constraints.txt -e '.[dev]' -e './lab[dask]'
	$(BIN)/python -m dendritree.ops
	touch $@

# Only the packages of the extra `docs`: the site is built from the source of the modules, without importing them.
$(VENV)/docs.stamp: pyproject.toml constraints.txt
	$(venv)
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' > $(VENV)/docs.txt
	$(PIP) install --no-compile -c constraints.txt -r $(VENV)/docs.txt
	touch $@

clean:
	git clean -qfdX dendritree/ops/cpu
	rm -rf $(VENV) .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
