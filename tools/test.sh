#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs every test for `make test`, and the tests inside the crates for `make check`.
# Names each part as it runs, and says how long it took. A part that compiles uses all
# processors. Tests that boot guests run beside those that do not.
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
# An interrupt does not reach background processes, so the trap ends the whole group.
trap 'trap "" TERM; trap - EXIT INT HUP; kill 0; exit 130' INT TERM HUP

part=0
# part WHAT COMMAND...: runs a command as the next part, and prints its time.
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

# declared: checks every target with exactly the declared toolchain, in a folder of its own.
# Its clippy knows lints that newer ones have given up. Its rustdoc must find its rustc.
declared() {
	bin=$(tools/rust.sh declared) || return 1
	mkdir -p "$built/declared"
	printf '//! ```\n//! assert!(true);\n//! ```\n' >"$built/declared/document.rs"
	"$bin/rustdoc" --test --edition 2021 "$built/declared/document.rs" >/dev/null || return 1
	PATH="$bin:$PATH" CARGO_TARGET_DIR="$built/declared" \
		cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
}

# Options of cargo that select the test files without guests (tools/guest-tests.sh has the
# rule for names), and the folders that are one.
host="--lib --bins $(ls -d crates/*/tests/*.rs xtask/tests/*.rs crates/*/tests/*/main.rs |
	sed 's|/main\.rs$||; s|\.rs$||; s|.*/||' | sort -u | grep -vE '^lab_|_lab$' | sed 's/^/--test /')"

# lane NAME THREADS OPTIONS...: runs cargo test and prints a line for each file, or all
# output of a file in which a test failed. The log keeps cargo test's whole output.
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

# tick: prints every 30 s how many tests have ended.
tick() {
	while sleep 30 && kill -0 $$ 2>/dev/null; do
		of_guests=$(cat "$logs"/guest/*.log 2>/dev/null | ended)
		of_host=$(ended <"$logs/host.log")
		echo "[$part/$parts] tests: $of_host of $all_host on the host, $of_guests of $all_guests with guests, $(($(date +%s) - begun)) s so far"
	done
}
ended() {
	grep -cE '^test .* \.\.\. (ok|FAILED|ignored.*)$' || true
}

tests() {
	rm -f "$logs"/*.log
	# shellcheck disable=SC2086 # a list of options
	all_host=$(cargo test --workspace --locked $host -- --list 2>/dev/null | grep -c ': test$' || true)
	all_guests=$(tools/guest-tests.sh list | wc -l)
	: >"$logs/host.log"
	tick &
	ticker=$!
	tools/guest-tests.sh all "$logs" &
	guests=$!
	# shellcheck disable=SC2086
	lane host 2 $host && ok=yes || ok=no
	wait $guests || ok=no
	kill "$ticker" 2>/dev/null || true
	ticker=
	[ $ok = yes ]
}

# sum: prints what cargo test said, at the end.
sum() {
	for log in "$logs"/guest/*.log "$logs/host.log" "$logs/documents.log"; do
		echo "cargo test: $(basename "$log" .log)"
		cat "$log"
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
	# Compiling takes 7 GB.
	free_mb=$(df -Pm "$built" | awk 'NR == 2 { print $4 }')
	if [ ! -d "$built/debug" ] && [ "$free_mb" -lt 7000 ]; then
		echo "test.sh: $built has $free_mb MB of free space, expected 7000 MB" >&2
		exit 1
	fi
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
	part "checkpatch and sparse" "$built/debug/xtask" lint
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
