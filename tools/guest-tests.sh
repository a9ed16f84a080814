#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs every test that boots a guest. A guest keeps one processor busy, so as many run
# side by side as there are processors, the longest files first.
#
# usage: guest-tests.sh list        a line for each test: FILE NAME
#        guest-tests.sh all LOGS    runs all; each writes LOGS/guest/FILE-NAME.log
#        guest-tests.sh one LOGS FILE NAME    runs one
set -eu

cd "$(dirname "$0")/.."

# files: lists the test files that boot guests, which are named lab_* or *_lab.
files() {
	ls crates/*/tests | sed -n 's/\.rs$//p' | sort -u | grep -E '^lab_|_lab$'
}

# weight FILE: prints roughly how many seconds of one processor its longest test takes.
weight() {
	case $1 in
	lab_fuzz | lab_tdc) echo 150 ;;
	lab_kernel) echo 100 ;;
	*) echo 50 ;;
	esac
}

list() {
	for file in $(files); do
		cargo test --workspace --locked --quiet --test "$file" -- --list |
			sed -n "s/^\(.*\): test\$/$(weight "$file") $file \1/p"
	done | sort -s -k 1,1nr | cut -d ' ' -f 2,3
}

# side_by_side: prints how many guests run at once. A guest has at least 512 MB, and 1 GB
# of free memory is asked for each.
side_by_side() {
	processors=$(nproc)
	fit=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
	[ "$fit" -ge 1 ] || fit=1
	[ "$fit" -lt "$processors" ] && echo "$fit" || echo "$processors"
}

# one LOGS FILE NAME: runs a test in a process of its own; prints a line when it ends, and
# its whole output if it failed.
one() {
	logs=$1 file=$2 name=$3
	log=$logs/guest/$file-$(echo "$name" | tr -c 'a-zA-Z0-9_\n' -).log
	from=$(date +%s)
	if cargo test --workspace --locked --test "$file" -- --exact "$name" >"$log" 2>&1 &&
		grep -qE '^test result: ok\. (1 passed|0 passed; 0 failed; 1 ignored)' "$log"; then
		grep -q '^test result: ok. 1 passed' "$log" && took="$(($(date +%s) - from)) s" || took=ignored
		echo "    $file: $name: $took"
	else
		cat "$log"
		echo "    $file: $name: failed after $(($(date +%s) - from)) s"
		return 1
	fi
}

case ${1:-} in
list)
	list
	;;
all)
	mkdir -p "$2/guest"
	rm -f "$2"/guest/*.log
	list >"$2/guest/tests"
	xargs -P "$(side_by_side)" -L 1 "$0" one "$2" <"$2/guest/tests"
	;;
one)
	one "$2" "$3" "$4"
	;;
*)
	echo "usage: $0 list | all LOGS | one LOGS FILE NAME" >&2
	exit 2
	;;
esac
