# The two commands are `make demo` and `make test`; both set everything up first, in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet -c constraints.txt

.PHONY: setup demo test test-slow lint bench docs clean

setup: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	@echo "setting up .venv (a minute or two the first time)"
	$(PYTHON) -m venv .venv
	$(PIP) -e ".[dev]"
	@touch $@

.venv/installed-bench: .venv/installed
	$(PIP) -e ".[dev,bench]"
	@touch $@

demo: setup  ## rerun what runs in minutes, end with the report
	@$(BIN)/teeter demo --out demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --level error

test: lint  ## lint, types, tests, doctests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: setup
	$(BIN)/python -m pytest -m slow

bench: .venv/installed-bench  ## every claim about speed, both sides in one run
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs: setup  ## redraw the gallery and the study pages from results/, and run every example
	$(BIN)/python docs/build.py
	$(BIN)/python -m pytest docs README.md

clean:
	rm -rf .venv demo .pytest_cache .ruff_cache
