# `make repro` runs the pipeline, `make test` the checks, `make score` phase two on a machine that has
# no model; each makes .venv first, from the lock.
PYTHON ?= python3
VENV := .venv
PIP = python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Scoring needs no torch; where the full environment is, it serves.
SCORING := $(if $(wildcard $(VENV)/.installed),$(VENV)/.installed,$(VENV)/.scoring)
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: repro score test test-slow env score-env lock clean

repro: env
	@twophase check
	dvc repro
	@twophase report --show

# On a machine that has no model: pull what was scored, or pull the predictions and score them.
# The first line is for scores that are up to date elsewhere: repro alone would skip them.
score: score-env
	@twophase check
	dvc pull --allow-missing data/scores data/plots
	dvc repro --pull --allow-missing score
	@twophase report --show

test: env
	ruff format --check .
	ruff check .
	mypy
	lint-imports
	pytest -m "not slow"

test-slow: env
	pytest -m slow

env: $(VENV)/.installed

score-env: $(SCORING)

$(VENV)/.installed: constraints.txt pyproject.toml
	@echo "setting up $(VENV) (2.4 GB, a few minutes)"
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[dev]'
	touch $@

$(VENV)/.scoring: constraints.txt pyproject.toml
	@echo "setting up $(VENV) for scoring (0.6 GB, a minute; no torch)"
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[dvc,report]'
	touch $@

# Pin what a fresh environment resolves to; the build of torch (+cpu) is left open.
lock:
	rm -rf $(VENV)/lock
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet 'torch==2.13.0'
	$(VENV)/lock/bin/python -m pip install --quiet --editable '.[dev]'
	$(VENV)/lock/bin/python -m pip freeze --exclude-editable | sed 's/+cpu$$//' > constraints.txt
	rm -rf $(VENV)/lock

clean:
	rm -rf $(VENV) .cache data/.cache data/.partial dvc_plots
