# `make demo` and `make test` work from a fresh clone: they need Python ≥ 3.11 and nothing else.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Only what is imported is compiled, when it is: that is half a minute less.
PIP    := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo test test-slow browser screenshots lint format docs bench clean

help:
	@echo "make demo    reproduce the phase transition in the number of heads: results/demo/report.html"
	@echo "make test    lint, type-check and test"
	@echo "make test-slow  the tests that take half a minute or more each"
	@echo "make screenshots  pictures of a page of every kind: results/screenshots"
	@echo "make format  format the code"
	@echo "make docs    build the documentation, strictly: site/index.html"
	@echo "make bench   the quick forms of the benchmarks, about five minutes"
	@echo "make clean   remove the virtual environment, the demo's results and the documentation"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "headwise needs Python 3.11 or newer; try: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[dev,pretrained,real-data,cluster,browser]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/headwise study run head-count --tier quick --store results/demo/head-count.db --report results/demo

test:
	$(MAKE) -j 2 lint browser
	$(BIN)/python -m pytest -n 2

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 -m slow

# The pages are tested in Debian's chromium. Where it cannot be installed, those tests are skipped.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || { echo "installing chromium for the tests of the pages"; \
	       (apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium) \
	         >/dev/null 2>&1; } \
	  || echo "chromium is not here and cannot be installed: the browser tests will be skipped"

screenshots: $(VENV)/.installed-dev browser
	PYTHONPATH=tests $(BIN)/python tests/browser/screenshots.py results/screenshots

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Not --quiet: MkDocs then counts no warnings, and a broken link would pass.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site/index.html"

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/speed/start.py
	$(BIN)/python benchmarks/speed/kernel.py --quick
	$(BIN)/python benchmarks/speed/encoder.py rank-16
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/speed/decoder.py

clean:
	rm -rf $(VENV) results/demo site
