# `make demo` and `make test` work from a fresh clone: they need Python ≥ 3.11 and nothing else.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo test lint format clean

help:
	@echo "make demo    reproduce the phase transition in the number of heads: results/demo/report.html"
	@echo "make test    lint, type-check and test"
	@echo "make format  format the code"
	@echo "make clean   remove the virtual environment and the demo's results"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "headwise needs Python 3.11 or newer; try: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[dev,pretrained]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/headwise study run head-count --tier quick --store results/demo/head-count.db --report results/demo

test: lint
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) results/demo
