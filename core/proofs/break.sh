#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Shows that the proofs can fail: that the end of every harness is reached, and
# that each harness notices the core broken on purpose, in a scratch copy, in
# each way that breaks.txt has for it. A break that no longer fits the code is
# an error, and so is a harness without one.
#
# usage: break.sh [HARNESS...]
# Exit status: 0 every break was noticed; 1 one was not, or does not apply.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
apply=$here/../../tests/mutation/apply.pl
list=$here/breaks.txt
case ${1:-} in
-h | --help)
	sed -n '3,/^set/{s/^# \{0,1\}//p;}' "$0"
	exit
	;;
esac

CBMC=$("$here/cbmc.sh")
export CBMC
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
names=$*
[ -n "$names" ] || names=$(cd "$here" && ls -- *.c | sed 's/\.c$//')

# Is it the property that fails, and not a run that went wrong?
"$here/prove.sh" --reached $names >"$scratch/reached" || {
	cat "$scratch/reached"
	echo "break.sh: a harness proves nothing: its end is not reached" >&2
	failed=1
}

printf '%-18s %-30s %s\n' harness broken result
for name in $names; do
	seen=
	for break in $(perl "$apply" "$list" names); do
		words=$(perl "$apply" "$list" show "$break" | tail -n +2)
		# shellcheck disable=SC2086 # the harness, and which of its runs
		set -- $words
		[ "$1" = "$name" ] || continue
		shift
		seen=1
		rm -rf "$scratch/core" "$scratch/out"
		mkdir -p "$scratch/out"
		cp -r "$here/.." "$scratch/core"
		perl "$apply" "$list" apply "$break" "$scratch/core/src" || {
			failed=1
			continue
		}
		line=$(PROOF_CORE=$scratch/core PROOF_OUT=$scratch/out PROOF_REACHED= \
			"$here/run.sh" "$name" 1 "$@")
		# shellcheck disable=SC2086
		set -- $line
		if [ "$2" = FAILED ]; then
			printf '%-18s %-30s noticed\n' "$name" "$break"
		else
			printf '%-18s %-30s NOT NOTICED: %s\n' "$name" "$break" "$2"
			failed=1
		fi
	done
	[ -n "$seen" ] || {
		echo "break.sh: breaks.txt has nothing for $name" >&2
		failed=1
	}
done
exit $failed
