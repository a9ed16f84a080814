# SPDX-License-Identifier: MIT OR Apache-2.0
# Two commands do everything: `make demo` and `make test`.

BUILT   := $(or $(CARGO_TARGET_DIR),target)
PSPACER := $(BUILT)/release/pspacer

# `setup` unpacks a Rust toolchain into the cache if the PATH has none that is new enough
# (tools/rust.sh).
ifndef PSP_RUST_SOUGHT
export PSP_RUST_SOUGHT := yes
export PATH := $(shell tools/rust.sh path)$(PATH)
endif

.PHONY: help setup build demo check fresh test test-all test-debug cross cni dra cluster compile-commands prove calculus qlog-stacks mutate fuzz experiments experiments-quick bench bench-stalls bench-ns3 bench-watch bench-verify deb rpm image test-packages release licences findings install uninstall clean

help:
	@echo "make demo               sets up, builds, shows psp beside htb on a busy host"
	@echo "make test               sets up, then tests what a change must pass"
	@echo "make test-all           tests everything on every kernel, PART=1/3 a third; of guests that the cache has one of sixteen boots again"
	@echo "make check              format, clippy, tests inside the crates; for each edit"
	@echo "make fresh              runs demo and test on an empty Debian: SUITE=bookworm (root)"
	@echo "make test-debug         tests psp on a kernel with KASAN, lockdep and the like; takes hours"
	@echo "make cross              tests the core's decisions on arm64, i686 and s390x, under qemu-user"
	@echo "make compile-commands   lets an editor (clangd) open each file of core/src and kernel alone"
	@echo "make prove              checks the core's proofs: docs/understand/proofs.md"
	@echo "make calculus           compares the bounds of predict with another library's"
	@echo "make qlog-stacks        judges qlogs of real QUIC stacks over a path whose truth is known (root)"
	@echo "make cni                drives pspacer-cni by cnitool and containerd, beside the stock bandwidth plugin"
	@echo "make dra                calls pspacer-node with Kubernetes' own structures in Go"
	@echo "make cluster            has Kubernetes' own scheduler give bandwidth that pspacer-node publishes"
	@echo "make mutate             breaks the core in small ways; the tests must notice"
	@echo "make fuzz               fuzzes TARGET=core for TIME=60 seconds: docs/contribute/fuzzing.md"
	@echo "make build              builds the pspacer command and the tc plugin"
	@echo "make experiments        runs each experiment whose page is stale in full, then bench and bench-stalls"
	@echo "make experiments-quick  runs a short form of each experiment, into out/quick"
	@echo "make bench              measures the scheduler's speed; writes docs/understand/benchmarks.md"
	@echo "make bench-stalls       measures pspacer stalls; writes docs/understand/stalls-benchmark.md"
	@echo "make bench-ns3          compares the simulator with ns-3; writes docs/understand/simulator-benchmark.md"
	@echo "make bench-verify       measures what pspacer verify costs a flood of small frames (root): docs/use/verify.md"
	@echo "make bench-watch        measures what pspacer watch costs a transfer (root): docs/use/watch.md"
	@echo "make deb                builds the Debian packages, into build/deb: docs/use/packages.md"
	@echo "make rpm                builds the RPM packages, into build/rpm"
	@echo "make image              builds an OCI image out of the Debian packages, into build/image"
	@echo "make test-packages      builds all packages, installs and uses them in roots of their own (root)"
	@echo "make release            collects what a release publishes, with its sums, into build/release: RELEASING.md"
	@echo "make licences           checks the crates' licences and advisories with cargo-deny"
	@echo "make findings           asks others' software whether it still does what surprised us (root)"
	@echo "make install            installs module (DKMS), tc plugin, command, unit and man pages (root)"
	@echo "make uninstall          removes what install put here (root)"
	@echo "make clean              removes what was built"

setup:
	@tools/setup.sh ar cargo cc clang-19 dpkg-deb git libelf make pkg-config setpriv

build: setup
	cargo build --release --locked --package pspacer --package cni --package node
	$(MAKE) --no-print-directory -C tc

# Compiles the command without what the demo does not use, into target/demo:
# docs/decisions/dependencies.md.
demo:
	@tools/ticking.sh setup tools/setup.sh ar cargo cc dpkg-deb git make setpriv
	@cargo build --profile demo --locked --package pspacer --no-default-features
	@$(BUILT)/demo/pspacer lab run experiments/demo --out out/demo

test test-all: setup
	@tools/setup.sh nm perl sparse tc xz yaml
	@tools/setup.sh aarch64-linux-gnu-gcc i686-linux-gnu-gcc qemu-aarch64 qemu-i386 qemu-s390x s390x-linux-gnu-gcc
	@[ $@ = test ] || tools/setup.sh arm-linux-gnueabihf-gcc
	@tools/test.sh $(@:test-%=%)

# Checks an edit: compiles and tests what was changed, and boots no guest.
check: setup
	@tools/test.sh check

fresh:
	@tools/setup.sh mmdebstrap
	@tests/fresh/run.sh $(or $(SUITE),bookworm)

# Takes a quarter of a minute; the first time apt fetches 200 MB of packages.
cross: setup
	@tools/setup.sh aarch64-linux-gnu-gcc i686-linux-gnu-gcc qemu-aarch64 qemu-i386 qemu-s390x s390x-linux-gnu-gcc
	@core/tests/run.sh build/cross

# KERNEL_BUILD names the build tree of another kernel than the running one.
compile-commands:
	@tools/setup.sh cc clang-19 make
	@tools/compile-commands.sh

# Fetches CBMC into the cache if it is not installed.
prove: setup
	@core/proofs/prove.sh
	@core/proofs/break.sh

# Maven fetches the library into the cache: docs/decisions/isochronous.md, "Bounds of network
# calculus".
calculus: setup
	@tools/setup.sh java mvn
	@tests/calculus/run.sh

# pip, Go and apt fetch the stacks into the cache. Takes minutes.
qlog-stacks: setup
	@tools/setup.sh dpkg-deb go
	@cargo build --release --locked --package pspacer
	@tests/qlog-stacks/run.sh

# Go fetches cnitool into the cache, apt containerd. Takes minutes.
cni: setup
	@tools/setup.sh dpkg-deb go cni-plugins
	@tests/cni/run.sh

# Go fetches Kubernetes' structures into its cache.
dra: setup
	@tools/setup.sh go
	@tests/dra/run.sh

# Go fetches and compiles Kubernetes' API server, scheduler and controllers into the cache, which
# takes ten minutes the first time and one then.
cluster: setup
	@tools/setup.sh dpkg-deb go
	@tests/cluster/run.sh

mutate: setup
	@tests/mutation/run.sh

fuzz: setup
	@tools/setup.sh c++
	@fuzz/run.sh $(or $(TARGET),core)

# Builds the debug kernel if the cache has none; CONTRIBUTING.md says how long it takes.
test-debug: setup
	@tools/setup.sh bc bison flex perl xz
	cargo test --locked --package vmlab lab_debug:: -- --ignored --nocapture --test-threads 1

# Goes on where it was interrupted: what is fresh is left out. CONTRIBUTING.md says how long it takes.
experiments: build
	$(PSPACER) experiments --full
	@$(MAKE) --no-print-directory bench bench-stalls

experiments-quick: build
	$(PSPACER) experiments

# Takes ten minutes and 8 GB of memory. Figures count only from an idle machine.
# BENCH="--quick" makes a short run.
bench: setup
	@tools/setup.sh dpkg-deb
	@cargo build --release --locked --package xtask
	@$(MAKE) --no-print-directory -C bench run TOOL="$(abspath $(BUILT))/release/xtask bench" DOCS=../docs/understand OPTIONS="$(BENCH)"

# Leaves captures of 10 million packets in out/bench, about 800 MB.
bench-stalls: setup
	@cargo build --release --locked --package xtask --package pspacer
	@$(abspath $(BUILT))/release/xtask bench stalls --pspacer $(abspath $(BUILT))/release/pspacer --folder out/bench --docs docs/understand

# pip fetches ns-3 into the cache. Takes a quarter of an hour, most of it in the laboratory.
bench-ns3: setup
	@cargo build --release --locked --package pspacer
	@bench/ns3/run.sh --lab

# Uses two network namespaces and a veth pair for a minute, and removes them.
bench-watch: setup
	@cargo build --release --locked --package pspacer
	@$(MAKE) --no-print-directory -C lab O=$(abspath build/lab)
	@bench/watch.sh $(PSPACER) build/lab

# Floods a veth pair in a network namespace of its own, as root.
bench-verify: setup
	@tools/setup.sh tcpdump
	@cargo test --release --locked --package verify --test it -- cost:: --ignored --nocapture

# Packages hold what is committed: docs/use/packages.md.
deb: setup
	@tools/setup.sh dh dh_apparmor dh_dkms dpkg-buildpackage lintian pkg-config tc
	@packaging/deb.sh

rpm: setup
	@tools/setup.sh eu-strip pkg-config rpmbuild rpmlint
	@packaging/rpm.sh

image: setup
	@tools/setup.sh mmdebstrap
	@packaging/image.sh

# What was built is installed and used in roots of its own: root, half an hour.
test-packages: deb rpm image
	@tools/setup.sh mmdebstrap podman runc
	@tests/packages/debian.sh
	@tests/packages/rpm.sh
	@tests/packages/image.sh

# Leaves what a release publishes in build/release. Refuses first what would be none.
release:
	@packaging/release.sh --check
	@$(MAKE) --no-print-directory deb rpm image
	@packaging/release.sh

findings:
	findings/all.sh $(NAMES)

licences: setup
	@packaging/licences.sh

# Does not build the command, because root's PATH may have no Rust toolchain: run
# `make build` first.
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
