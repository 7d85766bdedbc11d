# The two commands: `make demo` and `make test`. Each sets up what it needs and can be run again.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PLAIN  := .venv-plain
LOWEST := .venv-lowest
WHEELS := build/wheels
LOWEST_EXTRAS := pandas,polars,plot
comma  := ,
# What is run with NUMBA_BOUNDSCHECK=1: these kernels are the same as ever, but a wrong index is an error.
BOUNDS_CHECKED := tests/kernels tests/scoring tests/features tests/index/test_selection.py tests/index/test_static_order.py \
                  tests/index/test_forged_indexes.py
# Not --quiet: the first installation takes minutes, and pip shows what it downloads and builds.
PIP_INSTALL := -m pip install --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-slow test-gpu smoke lint bench results docs clean

help:            ## say what can be made
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

$(BIN)/python:
	@echo "==> making a virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Rankwell needs Python 3.11 or newer; say which with `make PYTHON=python3.12 ...`")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "==> installing rankwell and what it needs into $(VENV)"
	@$(BIN)/python $(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.installed-serve: pyproject.toml | $(BIN)/python
	@echo "==> installing rankwell and what its server needs into $(VENV)"
	@$(BIN)/python $(PIP_INSTALL) -e '.[serve]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	@echo "==> installing rankwell, its tests' tools and the libraries it is compared with into $(VENV)"
	@$(BIN)/python $(PIP_INSTALL) -e '.[test,lint]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-serve $(VENV)/.installed-docs

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	@echo "==> installing rankwell and what its documentation needs into $(VENV)"
	@$(BIN)/python $(PIP_INSTALL) -e '.[docs]'
	@touch $@ $(VENV)/.installed

# Without compiled kernels, which take minutes: what a wheel contains besides them is what is tried here.
$(WHEELS)/.built: pyproject.toml hatch_build.py build_backend.py $(shell find src -type f -not -name '*.pyc')
	@echo "==> building a wheel in $(WHEELS)"
	@rm -rf $(WHEELS)
	@RANKWELL_PREBUILD=none $(PYTHON) -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir $(WHEELS) .
	@touch $@

$(PLAIN)/.installed: $(WHEELS)/.built
	@echo "==> installing the wheel without any extra into $(PLAIN), an empty environment"
	@$(PYTHON) -m venv --clear $(PLAIN)
	@$(PLAIN)/bin/python $(PIP_INSTALL) $(WHEELS)/*.whl
	@touch $@

$(LOWEST)/.installed: pyproject.toml .ci/lowest_versions.py
	@echo "==> installing rankwell with the lowest versions that it allows into $(LOWEST)"
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(PYTHON) .ci/lowest_versions.py $(subst $(comma), ,$(LOWEST_EXTRAS)) > $(LOWEST)/constraints.txt
	@$(LOWEST)/bin/python $(PIP_INSTALL) -e '.[$(LOWEST_EXTRAS)]' --constraint $(LOWEST)/constraints.txt
	@touch $@

demo: $(VENV)/.installed  ## search the standard library's documentation, and learn to do it better
	@$(BIN)/rankwell demo

# The first ranker is the default. LambdaMART is the best for sentences, which all of them are trained on, but people also
# type names: for the bare names of 500 functions and classes RankSVM's mean reciprocal rank is 0.94, LambdaMART's 0.89.
serve: $(VENV)/.installed-serve  ## a page to search the demo's index by its rankers
	@test -f demo-output/lambdamart.rank || $(BIN)/rankwell demo
	@$(BIN)/rankwell serve demo-output/index --candidates 50 --judgments demo-output/votes.qrels \
		$(foreach name,ranksvm lambdamart rankboost listnet least-squares,--ranker demo-output/$(name).rank)

test: $(VENV)/.installed-test  ## run the tests (not the slow ones, not those that need a GPU)
	@echo "==> running the tests"
	@$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadfile --max-worker-restart=0 -m 'not slow and not gpu' --durations=10

test-slow: $(VENV)/.installed-test  ## run the tests that take minutes, and those of kernels with every index checked
	@$(BIN)/python -m pytest -m slow
	@echo "==> the kernels again, with every index checked"
	@NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -m 'not slow and not gpu' --ignore=tests/kernels/cpu $(BOUNDS_CHECKED)

test-gpu:        ## run the CUDA tests with this machine's own Python (needs CuPy, Numba, pytest)
	@PYTHONPATH=src $(PYTHON) -m pytest -m gpu -p no:cacheprovider

smoke: $(PLAIN)/.installed $(LOWEST)/.installed  ## imports and commands of a wheel without extras, and with the lowest versions
	@echo "==> a wheel, without any extra"
	@$(PLAIN)/bin/python -I .ci/smoke.py --wheel
	@echo "==> with the lowest versions"
	@$(LOWEST)/bin/python .ci/smoke.py

lint: $(VENV)/.installed-test  ## ruff, mypy, clang-format and hadolint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@find src tests -name '*.cu' -o -name '*.cuh' -o -name '*.cl' -o -name '*.h' | xargs $(BIN)/clang-format --dry-run --Werror
	@! test -x $(BIN)/hadolint || $(BIN)/hadolint Dockerfile

bench: $(VENV)/.installed-test  ## run every benchmark in its quick form
	@$(BIN)/python -m benchmarks --quick

results: $(VENV)/.installed-test  ## write the pages and plots of results from benchmarks/results/*.json
	@$(BIN)/python -m benchmarks.report

docs: $(VENV)/.installed-docs  ## build the documentation site in build/docs
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --fresh-env --quiet --doctree-dir build/doctrees docs build/docs
	@echo "open build/docs/index.html"

clean:           ## remove the virtual environments and caches
	rm -rf $(VENV) $(PLAIN) $(LOWEST) .pytest_cache .hypothesis .mypy_cache .ruff_cache build demo-output
