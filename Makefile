# Each target works alone in a fresh clone, with Python 3.11+ and make; everything is installed into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

# How many processes run the tests, and what else pytest is told: make test ARGS="-k limits".
JOBS ?= auto
ARGS ?=

.PHONY: help run test test-system bench lint format clean
.DELETE_ON_ERROR:

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1 - /p' Makefile

run: $(VENV)/.with-run ## migrate the embedded database var/rm.db and serve
	@mkdir -p var
	$(BIN)/rm-service migrate
	exec $(BIN)/rm-service serve

test: $(VENV)/.with-test ## the fast tests; they bring up their own PostgreSQL
	$(BIN)/python -m pytest -m "not system" --numprocesses $(JOBS) --maxprocesses 4 --dist worksteal $(ARGS)

# One after the other: they count on the machine's attention, and some kill what they started.
test-system: $(VENV)/.with-test ## real processes and crashes; minutes
	$(BIN)/python -m pytest -m system $(ARGS)

bench: $(VENV)/.with-bench ## the benchmarks' tables
	$(BIN)/python -m benchmarks $(ARGS)

lint: $(VENV)/.with-lint ## formatter, linter, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.with-lint ## put the source into form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what make and the tools made; var/ with its database stays
	rm -rf $(VENV) build dist *.egg-info .coverage .hypothesis .*_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp says that .venv holds what setup.cfg asks for; the package itself is installed as editable.
$(VENV)/.with-run: EXTRAS :=
$(VENV)/.with-test: EXTRAS := [test]
$(VENV)/.with-bench: EXTRAS := [bench]
$(VENV)/.with-lint: EXTRAS := [test,lint]

$(VENV)/.with-%: setup.cfg pyproject.toml | $(BIN)/python
	$(PIP) install --editable ".$(EXTRAS)"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "make: Python 3.11+ is needed (make PYTHON=...)")'
	$(PYTHON) -m venv $(VENV)
