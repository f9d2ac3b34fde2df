# Targets for people, hooks and CI. Each installs what it needs and repeats nothing that is up to date.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
FUZZ_BUILD := $(CURDIR)/target/fuzz
FUZZ_TARGETS := text segment sets postings join
FUZZ_SECONDS ?= 60
TOOLS := $(CURDIR)/target/tools
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name 'Cargo.toml')

# Succeeds if there is a Java version that Spark supports, 17 or newer.
HAS_JAVA := java -version 2>&1 | grep -E 'version "(1[7-9]|[2-9][0-9])' >/dev/null

# Tests that need no POSIX: no signals, processes, pipes, limits, full disks.
PORTABLE := tests/unit tests/golden --ignore tests/unit/spark

# A wheel for Linux runs with this C library and newer ones: zig links against it whatever this machine has.
LINKED = $(if $(findstring linux-gnu,$(TARGET)),--zig --compatibility manylinux2014)$(if $(findstring linux-musl,$(TARGET)),--zig --compatibility musllinux_1_2)
RUST_TARGETS = $(if $(filter universal2%,$(TARGET)),x86_64-apple-darwin aarch64-apple-darwin,$(TARGET))

.PHONY: demo test test-portable test-without-posix check docs wheel wheel-for try-wheel container torture fuzz audit advisories bench bench-all chromium java clean

demo: $(VENV)/installed ## Build, install, and deduplicate the source files of Python
	$(BIN)/python examples/demo.py

test: $(VENV)/ready chromium java ## Run all tests, Python and Rust; Spark tests on two clusters
	cargo test --release --quiet --workspace --exclude minwise-kernel-py
	CARGO_TARGET_DIR=$(FUZZ_BUILD) cargo test --release --quiet --manifest-path fuzz/Cargo.toml
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/spark
	$(BIN)/python -m pytest -n auto --ignore tests/spark

test-portable: $(VENV)/ready ## Run the tests that need no POSIX; CI runs them on macOS and Windows
	$(BIN)/python -m pytest -n auto $(PORTABLE) tests/property

test-without-posix: $(VENV)/ready ## Run them, but tests/property, in a process without the modules and functions of POSIX
	$(BIN)/python -m pytest -p support.windows_stand_in --timeout-method thread $(PORTABLE)

check: $(VENV)/ready ## Run everything that CI runs: format, lint, types, stubs, layers, site, wheel, tests
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --quiet --release --all-targets -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 src
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin src
	$(BIN)/python -m mypy.stubtest minwise._kernel
	$(BIN)/lint-imports
	$(MAKE) docs wheel
	$(MAKE) test

docs: $(VENV)/ready ## Build the site from docs/ into site/; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

wheel: $(VENV)/ready ## Build the source distribution, and from it an abi3 wheel, into dist/
	rm -rf dist
	$(BIN)/python -m maturin sdist --out dist
	CARGO_TARGET_DIR=$(CURDIR)/target $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist dist/minwise-*.tar.gz

wheel-for: $(VENV)/builder ## Build a wheel for TARGET, such as aarch64-unknown-linux-musl, into dist/
	rustup target add $(RUST_TARGETS)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m maturin build --release --target $(TARGET) $(LINKED) --out dist

try-wheel: ## Install the wheel of dist/ into a new environment of PYTHON without Rust, and time a first result
	$(PYTHON) tests/support/try_wheel.py dist

container: ## Build a container image from the wheel of dist/
	docker build --file Containerfile --tag minwise .

torture: $(VENV)/ready ## Run tests that are too slow for CI: kills, power cuts, I/O errors, bit flips, all one-answer settings, mutated files, fuzz targets
	MINWISE_TORTURE=1 $(BIN)/python -m pytest -n auto tests/reliability tests/quality/test_index_poison.py tests/property/test_one_answer.py tests/property/test_index_model.py
	MINWISE_TORTURE=1 $(BIN)/python -m pytest tests/spark
	PYTHONPATH=tests $(BIN)/python tests/support/mutation_cases.py --rounds 1000
	MINWISE_FUZZ_ROUNDS=100000 CARGO_TARGET_DIR=$(FUZZ_BUILD) cargo test --release --manifest-path fuzz/Cargo.toml -- --nocapture

fuzz: ## Fuzz the kernel with libFuzzer, FUZZ_SECONDS per target; needs a nightly compiler, which make test does not
	@cargo +nightly --version >/dev/null 2>&1 || { echo "make fuzz needs a nightly compiler next to the stable one: rustup toolchain install nightly" >&2; exit 1; }
	$(MAKE) $(TOOLS)/bin/cargo-fuzz
	for target in $(FUZZ_TARGETS); do \
		mkdir -p $(FUZZ_BUILD)/corpus/$$target; \
		PATH="$(TOOLS)/bin:$$PATH" cargo +nightly fuzz run --fuzz-dir fuzz --target-dir $(FUZZ_BUILD) --features libfuzzer $$target \
			$(FUZZ_BUILD)/corpus/$$target fuzz/corpus/$$target -- -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -verbosity=0 || exit 1; \
	done

audit: $(TOOLS)/bin/cargo-deny ## Check licences, sources and duplicates of Rust dependencies; needs no database
	PATH="$(TOOLS)/bin:$$PATH" cargo deny --all-features check bans licenses sources

advisories: $(TOOLS)/bin/cargo-deny $(VENV)/ready ## Look up known vulnerabilities of all dependencies; needs the RustSec database and the JSON API of PyPI
	PATH="$(TOOLS)/bin:$$PATH" cargo deny --all-features check advisories
	$(PYTHON) -m venv $(TOOLS)/pip-audit
	$(TOOLS)/pip-audit/bin/python -m pip install --quiet pip-audit
	$(BIN)/python -m pip freeze --exclude-editable > $(TOOLS)/installed.txt
	$(TOOLS)/pip-audit/bin/pip-audit --strict --no-deps --disable-pip -r $(TOOLS)/installed.txt

$(TOOLS)/bin/%:
	cargo install $* --locked --root $(TOOLS)

bench: $(VENV)/ready ## Measure minwise and every peer: three sizes, one and two cores, time, memory, growth; update the record and the README
	$(BIN)/python -m benchmarks.peers
	$(BIN)/python -m docs.tools

bench-all: bench ## Run all benchmarks; takes hours
	$(BIN)/python -m benchmarks.bounds
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.exact
	$(BIN)/python -m benchmarks.exact.measures
	$(BIN)/python -m benchmarks.index
	$(BIN)/python -m benchmarks.server
	$(BIN)/python -m benchmarks.spark
	$(BIN)/python -m benchmarks.linkage
	$(BIN)/python -m benchmarks.linkage.filters
	$(BIN)/python -m benchmarks.vectors
	$(BIN)/python -m benchmarks.quality
	$(BIN)/python -m benchmarks.quality.partial_copies
	$(BIN)/python -m benchmarks.quality.templates
	$(BIN)/python -m benchmarks.quality.figures
	$(BIN)/python -m benchmarks.passages
	$(BIN)/python -m benchmarks.decontaminate
	$(BIN)/python -m benchmarks.nearest
	$(BIN)/python -m benchmarks.growth
	$(BIN)/python -m docs.tools

chromium: ## Install the browser of the page tests if run as root; without it those tests are skipped
	@command -v chromium >/dev/null || [ "$$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null || \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } || true

java: ## Install the Java runtime of the Spark tests if run as root; without it those tests are skipped
	@{ $(HAS_JAVA); } || [ "$$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null || \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless; } || true

clean: ## Delete everything that was built
	rm -rf $(VENV) target site dist

$(VENV)/python:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/installed: $(VENV)/python pyproject.toml $(RUST)
	$(BIN)/python -m pip install --quiet --editable '.[server]'
	touch $@

$(VENV)/builder: $(VENV)/python pyproject.toml
	$(BIN)/python -m pip install --quiet 'maturin[zig]>=1.8,<2'
	touch $@

$(VENV)/ready: $(VENV)/python pyproject.toml $(RUST)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(VENV)/installed $@
