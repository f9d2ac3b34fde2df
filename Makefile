# The targets people, hooks and CI call. Each does its own set-up and does nothing twice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name 'Cargo.toml')

.PHONY: demo test check bench clean

demo: $(VENV)/installed ## Build, install, and deduplicate what Python came with
	$(BIN)/python examples/demo.py

test: $(VENV)/ready ## Every test, Python and Rust
	cargo test --release --quiet --workspace --exclude minwise-kernel-py
	$(BIN)/python -m pytest

check: $(VENV)/ready ## What CI runs: format, lint, types, stubs, architecture, tests
	cargo fmt --all --check
	cargo clippy --quiet --release --all-targets -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest minwise._kernel
	$(BIN)/lint-imports
	$(MAKE) test

bench: $(VENV)/ready ## Speed against the peers; writes benchmarks/record/
	$(BIN)/python -m benchmarks.speed

clean: ## Forget everything that was built
	rm -rf $(VENV) target

$(VENV)/python:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/installed: $(VENV)/python pyproject.toml $(RUST)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/ready: $(VENV)/python pyproject.toml $(RUST)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(VENV)/installed $@
