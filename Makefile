# The commands a newcomer needs. Everything else: `cargo xtask help`.

# Outside the checkout, so that cold builds are rare.
export CARGO_TARGET_DIR ?= $(shell scripts/target-dir)
# How the window and the program are built, and where cargo leaves the program.
BUILD_UI ?= cargo xtask ui
BUILD ?= cargo build --release --package candela
BUILT ?= release
CANDELA := $(CARGO_TARGET_DIR)/$(BUILT)/candela

.PHONY: up demo build test lint bench

# Installs what is missing, builds, and starts agent + server + window on this host.
up: build
	@scripts/up $(CANDELA) $(ARGS)

# The window over a day that was made up: no privileges, no agent.
demo: build
	@$(CANDELA) demo $(ARGS)

build:
	@scripts/install-deps build
	@$(BUILD_UI)
	@$(BUILD)

test:
	@scripts/install-deps test
	@cargo xtask ui
	@cargo xtask test

lint:
	@scripts/install-deps test
	@cargo xtask lint

bench:
	@scripts/install-deps test
	@cargo xtask bench
