# `make` lists the targets. Everything is installed into $(VENV); nothing else on the machine is touched but the user's cache.
PYTHON ?= python3.11
VENV ?= .venv
# Where pip finds torch, beside its default index. Without a GPU: TORCH_INDEX=https://download.pytorch.org/whl/cpu saves several GB.
TORCH_INDEX ?=
RUN := HF_HUB_OFFLINE=1 $(VENV)/bin
PIP := $(VENV)/bin/pip install -q --disable-pip-version-check $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
# glibc gives freed memory back to the system after every step and takes it again; on CPUs that costs more than the arithmetic.
# Memory then only grows, which the demo's small batches allow. Never set these where memory is measured.
KEEP_MEMORY := MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=68719476736 MALLOC_TOP_PAD_=268435456

.DEFAULT_GOAL := help
.PHONY: help setup setup-test demo test test-fast bench lint

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  \1\t/' | expand -t 14

setup: $(VENV)/.core  ## install what the demo needs (CPU, pinned in requirements/core.lock)

setup-test: $(VENV)/.full  ## install what the tests need (adds the real vLLM engine, requirements/full.lock)

demo: $(VENV)/.core  ## train on the synthetic corpus, compare base and checkpoint with human labels, print the result
	$(KEEP_MEMORY) $(RUN)/python train_dpo.py
	$(KEEP_MEMORY) $(RUN)/python eval/human_agreement.py "checkpoints=[runs/demo-latest]"

test: $(VENV)/.full lint  ## all tests, each suite with its time and budget
	$(RUN)/python -m tests.suites

test-fast: $(VENV)/.core  ## the tests that load no language model (under two minutes)
	$(RUN)/python -m pytest -m "not slow" tests

bench: $(VENV)/.core  ## measure speed and memory; writes benchmarks/out/
	$(RUN)/python benchmarks/describe_scale.py
	$(RUN)/python benchmarks/interval_coverage.py
	$(RUN)/python benchmarks/scorer_speed.py
	$(RUN)/python benchmarks/dpo_step.py

lint: $(VENV)/.core  ## ruff and mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

$(VENV)/.core: requirements/core.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-deps -r requirements/core.lock
	$(PIP) --no-deps -e .
	touch $@

$(VENV)/.full: requirements/full.lock $(VENV)/.core
	$(PIP) --no-deps -r requirements/full.lock
	touch $@
