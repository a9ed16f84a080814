#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Every test, for `make test`; and for `make check` those that need no guest.
# Says which part runs, how many there are, and what each took. Of the parts that
# compile each uses all processors; the tests then run in three lanes side by side,
# of which two boot guests: one guest is one processor's work.
#
# usage: test.sh all|check
set -eu

cd "$(dirname "$0")/.."
built=${CARGO_TARGET_DIR:-target}
logs=$built/test-logs
mkdir -p "$logs"
begun=$(date +%s)
ticker=
trap '[ -z "$ticker" ] || kill "$ticker" 2>/dev/null' EXIT
# What runs in the background does not hear of an interrupt by itself.
trap 'trap "" TERM; trap - EXIT INT HUP; kill 0; exit 130' INT TERM HUP

part=0
# part WHAT COMMAND...
part() {
	part=$((part + 1))
	what=$1
	shift
	echo "[$part/$parts] $what ..."
	from=$(date +%s)
	if "$@"; then
		echo "[$part/$parts] $what ... $(($(date +%s) - from)) s"
	else
		echo "[$part/$parts] $what ... failed after $(($(date +%s) - from)) s"
		return 1
	fi
}

programs_in_c() {
	for folder in lab:test tc:check bench:check; do
		make --no-print-directory -C "${folder%:*}" "${folder#*:}" || return 1
	done
}

# With exactly the toolchain declared, and a folder of its own.
declared() {
	bin=$(tools/rust.sh declared) || return 1
	PATH="$bin:$PATH" CARGO_TARGET_DIR="$built/declared" \
		cargo check --quiet --workspace --all-targets --locked
}

# Names of test files as options of cargo, those that boot guests or the others.
# A name says so: lab_* or *_lab.
guests() {
	ls crates/*/tests | sed -n 's/\.rs$//p' | sort -u | grep -E '^lab_|_lab$'
}
options() {
	sed 's/^/--test /'
}
kernel='--test lab_kernel'
laboratory=$(guests | grep -v '^lab_kernel$' | options)
host="--lib --bins $(ls crates/*/tests | sed -n 's/\.rs$//p' | sort -u | grep -vE '^lab_|_lab$' | options)"

# lane NAME THREADS OPTIONS...: a line for each file as it ends, and the whole of it
# if a test failed. cargo test's own output stays in the log.
lane() {
	name=$1
	threads=$2
	shift 2
	rm -f "$logs/$name.status"
	{
		RUST_TEST_THREADS=$threads cargo test --workspace --locked --no-fail-fast "$@" 2>&1 && status=0 || status=$?
		echo $status >"$logs/$name.status"
	} | tee "$logs/$name.log" | awk '
		{ held = held $0 "\n" }
		/^ +(Running|Doc-tests) / { file = $0; sub(/^ +(Running )?/, "", file); sub(/ \(.*/, "", file) }
		/^test result: ok/ { sub(/^test result: /, ""); print "    " file ": " $0; held = ""; fflush() }
		/^test result: FAILED/ { printf "%s", held; held = ""; fflush() }
		/^error/ { printf "%s", held; held = ""; fflush() }'
	[ "$(cat "$logs/$name.status")" = 0 ]
}

# How far the lanes are, now and then.
tick() {
	while sleep 30 && kill -0 $$ 2>/dev/null; do
		of_guests=$(cat "$logs/kernel.log" "$logs/laboratory.log" 2>/dev/null | count)
		of_host=$(count <"$logs/host.log")
		echo "[$part/$parts] tests: $of_host of $all_host on the host, $of_guests of $all_guests with guests, $(($(date +%s) - begun)) s so far"
	done
}
count() {
	grep -cE '^test .* \.\.\. (ok|FAILED|ignored.*)$' || true
}
# How many tests there are in files.
number() {
	cargo test --workspace --locked "$@" -- --list 2>/dev/null | grep -c ': test$' || true
}

tests() {
	rm -f "$logs"/*.log
	# shellcheck disable=SC2086 # lists of options
	all_host=$(number $host) all_guests=$(number $kernel $laboratory)
	: >"$logs/host.log"
	tick &
	ticker=$!
	# shellcheck disable=SC2086
	{
		lane kernel 1 $kernel &
		first=$!
		lane laboratory 1 $laboratory &
		second=$!
		lane host 2 $host && ok=yes || ok=no
		wait $first || ok=no
		wait $second || ok=no
	}
	kill "$ticker" 2>/dev/null || true
	ticker=
	[ $ok = yes ]
}

# At the end, what cargo test itself said, lane by lane.
sum() {
	for name in kernel laboratory host documents; do
		echo "cargo test: $name"
		cat "$logs/$name.log"
	done
}

case ${1:-} in
check)
	parts=3
	part "format" cargo fmt --all --check
	part "clippy" cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
	part "tests inside the crates" cargo test --workspace --locked --lib --bins
	;;
all)
	parts=10
	part "format" cargo fmt --all --check
	part "setup" tests/fresh/toolchain.sh
	part "programs in C" programs_in_c
	part "core on arm64 and s390x" core/tests/run.sh build/cross
	part "clippy" cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
	if [ "$(cargo --version | sed 's/^cargo \([0-9]*\.[0-9]*\).*/\1/')" = "$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)" ]; then
		part "Rust as declared" echo "is what everything is compiled with here"
	else
		part "Rust as declared" declared
	fi
	part "compiling the tests" cargo test --quiet --workspace --locked --no-run
	part "checkpatch and sparse" "$built/debug/pspacer" lab lint
	passed=yes
	part "tests" tests || passed=no
	part "tests in documents" lane documents 2 --doc || passed=no
	sum
	[ $passed = yes ]
	;;
*)
	echo "usage: $0 all|check" >&2
	exit 2
	;;
esac
echo "passed in $(($(date +%s) - begun)) s"
