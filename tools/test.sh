#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the tests of a tier: `make check`, `make test` and `make test-all`; tests/tiers.toml has
# what is in which. Names each part as it runs, and says how long it took on the clock and of the
# processors.
#
# usage: test.sh check|test|all
#   PART  of all, only this part of the tests, such as 1/3
set -eu

cd "$(dirname "$0")/.."
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")
logs=$built/test-logs
mkdir -p "$built"
begun=$(date +%s)
# A signal ends what was started, too.
trap 'trap "" TERM; trap - INT HUP; kill 0; exit 130' INT TERM HUP

# processor_time: sets processor_s to the processor time of all that was waited for, in seconds. A
# subshell would have times of its own.
processor_time() {
	times >"$built/test-times"
	processor_s=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$built/test-times")
}

part=0
table=
# part WHAT COMMAND...: runs a command as the next part, and prints its time.
part() {
	part=$((part + 1))
	what=$1
	shift
	echo "[$part/$parts] $what ..."
	from=$(date +%s)
	processor_time
	processor_from=$processor_s
	status=0
	"$@" || status=$?
	processor_time
	took="$(($(date +%s) - from)) s, $((processor_s - processor_from)) s of processor"
	[ $status = 0 ] || took="failed after $took"
	echo "[$part/$parts] $what ... $took"
	table="$table  $what: $took
"
	return $status
}

# beside COMMAND...: starts a command that works on one processor beside the next part.
beside() {
	"$@" >"$built/beside.log" 2>&1 &
	beside_pid=$!
}

# joined: waits for what was started beside, and prints what it said.
joined() {
	joined_status=0
	wait "$beside_pid" || joined_status=$?
	cat "$built/beside.log"
	return $joined_status
}

times_of_parts() {
	printf 'parts:\n%s' "$table"
}

in_c() {
	for folder in lab:test tc:check bench:check; do
		make --no-print-directory -C "${folder%:*}" "${folder#*:}" || return 1
	done
	core/tests/run.sh build/cross
}

# lints: clippy on everything, and on the command of `make demo`.
lints() {
	cargo clippy --quiet --locked --workspace --all-targets -- -D warnings &&
		cargo clippy --quiet --locked --package pspacer --no-default-features -- -D warnings
}

# compile: compiles every test with exactly the declared toolchain, in a folder of its own, with clippy in rustc's place
# for the workspace's crates: so one build gives the tests and what clippy says. Its clippy knows lints that
# newer ones have given up. Its rustdoc must find its rustc. Programs know no folder of the clone, so they are the same in
# each, and the store answers guests that carry them. Without lines for debuggers a seventh of the time is saved.
compile() {
	bin=$(tools/rust.sh declared) || return 1
	mkdir -p "$built/declared"
	export PATH="$bin:$PATH" CARGO_TARGET_DIR="$built/declared" RUSTC_WORKSPACE_WRAPPER="$bin/clippy-driver"
	end=__CLIPPY_HACKERY__
	export CARGO_PROFILE_DEV_DEBUG=0
	export CLIPPY_ARGS="--remap-path-prefix=$PWD=.$end-D${end}warnings$end"
	printf '//! ```\n//! assert!(true);\n//! ```\n' >"$built/declared/document.rs"
	rustdoc --test --edition 2021 "$built/declared/document.rs" >/dev/null || return 1
	# A full disk costs what is kept, not the run.
	tools/crates.sh take "$built/declared" || echo "test.sh: crates of others are compiled" >&2
	cargo test --quiet --workspace --locked --no-run || return 1
	cargo check --quiet --locked --package pspacer --no-default-features || return 1
	tools/crates.sh keep "$built/declared" || echo "test.sh: crates of others are not kept" >&2
}

# documents: runs the tests in documents, as cargo test says them.
documents() {
	cargo test --quiet --workspace --locked --doc
}

# sum: prints what the programs of tests said, at the end.
sum() {
	for log in "$logs"/*.log; do
		echo "$(basename "$log" .log):"
		cat "$log"
	done
}

case ${1:-} in
check)
	parts=3
	part "format" cargo fmt --all --check
	part "clippy" lints
	part "tests inside the crates" cargo xtask test --tier check
	;;
test | all)
	# Compiling takes 4 GB.
	free_mb=$(df -Pm "$built" | awk 'NR == 2 { print $4 }')
	if [ ! -d "$built/declared/debug" ] && [ "$free_mb" -lt 5000 ]; then
		echo "test.sh: $built has $free_mb MB of free space, expected 5000 MB" >&2
		exit 1
	fi
	parts=7
	part "format" cargo fmt --all --check
	part "setup" tests/fresh/toolchain.sh
	beside in_c
	part "compiling the tests, with clippy" compile
	part "programs in C, and the core on arm64, i686 and s390x" joined
	beside "$built/declared/debug/xtask" lint
	passed=yes
	part "tests" "$built/declared/debug/xtask" test --tier "$1" ${PART:+--part "$PART"} --logs "$logs" || passed=no
	part "checkpatch and sparse" joined || passed=no
	part "tests in documents" documents || passed=no
	sum
	times_of_parts
	[ $passed = yes ]
	;;
*)
	echo "usage: $0 check|test|all" >&2
	exit 2
	;;
esac
echo "passed in $(($(date +%s) - begun)) s"
