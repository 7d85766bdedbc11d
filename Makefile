# The two commands: `make demo` and `make test`. Each sets up what it needs and can be run again.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-gpu lint bench results clean

help:            ## say what can be made
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

$(BIN)/python:
	@echo "==> making a virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Rankwell needs Python 3.11 or newer; say which with `make PYTHON=python3.12 ...`")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "==> installing rankwell and what it needs into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	@echo "==> installing rankwell, its tests' tools and the libraries it is compared with into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed  ## search the standard library's documentation, and learn to do it better
	@$(BIN)/rankwell demo

test: $(VENV)/.installed-test  ## run the tests (not the slow ones, not those that need a GPU)
	@echo "==> running the tests"
	@$(BIN)/python -m pytest -m 'not slow and not gpu'

test-slow: $(VENV)/.installed-test  ## run the tests that take minutes
	@$(BIN)/python -m pytest -m slow

test-gpu:        ## run the CUDA tests with this machine's own Python (needs CuPy, Numba, pytest)
	@PYTHONPATH=src $(PYTHON) -m pytest -m gpu -p no:cacheprovider

lint: $(VENV)/.installed-test  ## ruff, mypy and clang-format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@find src tests -name '*.cu' -o -name '*.cuh' -o -name '*.cl' -o -name '*.h' | xargs $(BIN)/clang-format --dry-run --Werror

bench: $(VENV)/.installed-test  ## run every benchmark in its quick form
	@$(BIN)/python -m benchmarks --quick

results: $(VENV)/.installed-test  ## write docs/results.md from benchmarks/results/*.json
	@$(BIN)/python -m benchmarks.report

clean:           ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .hypothesis .mypy_cache .ruff_cache demo-output
