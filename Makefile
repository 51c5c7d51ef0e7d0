# The commands a newcomer needs. Everything else: `cargo xtask help`.

# Outside the checkout, so that cold builds are rare.
export CARGO_TARGET_DIR ?= $(shell scripts/target-dir)
CANDELA := $(CARGO_TARGET_DIR)/release/candela

.PHONY: up build test lint bench

# Installs what is missing, builds, and starts agent + server + window on this host.
up: build
	@scripts/up $(CANDELA) $(ARGS)

build:
	@scripts/install-deps build
	@cargo xtask ui
	@cargo build --release --package candela

test:
	@scripts/install-deps test
	@scripts/fetch-kernels
	@cargo xtask ui
	@cargo xtask test

lint:
	@scripts/install-deps test
	@cargo xtask lint

bench:
	@scripts/install-deps test
	@cargo xtask bench
