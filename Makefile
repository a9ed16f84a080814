# SPDX-License-Identifier: MIT OR Apache-2.0
# Two commands do everything: `make demo` and `make test`.

BUILT   := $(or $(CARGO_TARGET_DIR),target)
PSPACER := $(BUILT)/release/pspacer

# Without a Rust toolchain that will do, `setup` unpacks one here: tools/rust.sh.
ifndef PSP_RUST_SOUGHT
export PSP_RUST_SOUGHT := yes
export PATH := $(shell tools/rust.sh path)$(PATH)
endif

.PHONY: help setup build demo check fresh test test-debug cross prove calculus mutate fuzz experiments experiments-quick bench bench-stalls bench-watch install uninstall clean

help:
	@echo "make demo               set up, build, show psp beside htb on a busy host"
	@echo "make test               set up, then every test"
	@echo "make check              for each edit: format, clippy, tests inside the crates"
	@echo "make fresh              demo and test on an empty Debian: SUITE=bookworm (root)"
	@echo "make test-debug         psp on a kernel with KASAN, lockdep and the like; hours at first"
	@echo "make cross              the core's decisions on arm64 and s390x, under qemu-user"
	@echo "make prove              bounded model checking of the core: docs/proofs.md"
	@echo "make calculus           the bounds of predict beside another library's"
	@echo "make mutate             breaks the core in small ways; the tests must notice"
	@echo "make fuzz               fuzzes TARGET=core for TIME=60 seconds: docs/fuzzing.md"
	@echo "make build              the pspacer command and the tc plugin"
	@echo "make experiments        every experiment in full; writes docs/results"
	@echo "make experiments-quick  a short form of each, into out/quick"
	@echo "make bench              the scheduler's speed; writes docs/benchmarks.md"
	@echo "make bench-stalls       the speed of pspacer stalls; writes docs/stalls-benchmark.md"
	@echo "make bench-watch        what pspacer watch costs a transfer (root); docs/watch.md"
	@echo "make install            on this host: module (DKMS), tc plugin, command, man pages (root)"
	@echo "make uninstall          take them away again (root)"
	@echo "make clean              remove what was built"

setup:
	@tools/setup.sh ar cargo cc clang dpkg-deb git make setpriv

build: setup
	cargo build --release --locked --package pspacer
	$(MAKE) --no-print-directory -C tc

demo: setup
	@cargo build --release --locked --package pspacer
	@$(PSPACER) lab run experiments/demo --out out/demo

test: setup
	@tools/setup.sh perl sparse nm tc xz
	@tools/setup.sh aarch64-linux-gnu-gcc qemu-aarch64 qemu-s390x s390x-linux-gnu-gcc
	@tools/test.sh all

# For each edit: what was changed is compiled and checked, and no guest is booted.
check: setup
	@tools/test.sh check

fresh:
	@tests/fresh/run.sh $(or $(SUITE),bookworm)

# A quarter of a minute, and 200 MB of packages the first time.
cross: setup
	@tools/setup.sh aarch64-linux-gnu-gcc qemu-aarch64 qemu-s390x s390x-linux-gnu-gcc
	@core/tests/run.sh build/cross

# CBMC comes with it, as a package that is not installed.
prove: setup
	@core/proofs/prove.sh
	@core/proofs/break.sh

# The library comes by Maven, into the cache: docs/decisions/isochronous.md, "Bounds of network
# calculus".
calculus: setup
	@tools/setup.sh java mvn
	@tests/calculus/run.sh

mutate: setup
	@tests/mutation/run.sh

fuzz: setup
	@tools/setup.sh c++
	@fuzz/run.sh $(or $(TARGET),core)

# Builds the debug kernel if the cache has none. See CONTRIBUTING.md.
test-debug: setup
	@tools/setup.sh bc bison flex libelf perl xz
	cargo test --locked --package vmlab --test lab_debug -- --ignored --nocapture --test-threads 1

experiments: build
	$(PSPACER) experiments --full

experiments-quick: build
	$(PSPACER) experiments

# Ten minutes and 8 GB of memory; figures are good only of a machine with
# nothing else to do. BENCH="--quick" gives a look.
bench: setup
	@tools/setup.sh dpkg-deb
	@cargo build --release --locked --package xtask
	@$(MAKE) --no-print-directory -C bench run TOOL="$(abspath $(BUILT))/release/xtask bench" DOCS=../docs OPTIONS="$(BENCH)"

# Captures of 10 million packets stay in out/bench, about 800 MB.
bench-stalls: setup
	@cargo build --release --locked --package xtask --package pspacer
	@$(abspath $(BUILT))/release/xtask bench stalls --pspacer $(abspath $(BUILT))/release/pspacer --folder out/bench --docs docs

# Two network name spaces and a veth pair, for a minute; nothing stays.
bench-watch: setup
	@cargo build --release --locked --package pspacer
	@$(MAKE) --no-print-directory -C lab O=$(abspath build/lab)
	@bench/watch.sh $(PSPACER) build/lab

# Root's PATH need not have the Rust toolchain: `make build` comes before.
install:
	@tools/setup.sh cc dkms make tc
	@tools/install.sh install

uninstall:
	@tools/install.sh uninstall

clean:
	cargo clean
	$(MAKE) -C tc clean
	$(MAKE) -C lab clean
	rm -rf build out
