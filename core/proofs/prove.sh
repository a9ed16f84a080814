#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Proves what docs/understand/proofs.md says of the core, by bounded model checking: every
# harness in this folder, with CBMC, over the very files in core/src.
#
# usage: prove.sh [--core DIR] [--reached] [HARNESS...]
#   --core DIR  the core to prove it of (the one this folder is in)
#   --reached   ask instead whether the end of each harness can be reached
#   JOBS        runs side by side (2)
#   LIMIT       seconds of processor for one run (600)
# Exit status: 0 all proved (or reached); 1 something is not; 2 usage.
#
# What a harness says of itself, in its first comment:
#   @proves TEXT     for the table
#   @bounds TEXT     for the table
#   @options ...     for cbmc: how often loops are unwound
#   @each A=1 B=0..3 one run for each value of the last; several such lines
#   @wraps NAMES     unsigned numbers must not overflow but in these functions,
#                    which are meant to wrap
set -eu

here=$(cd "$(dirname "$0")" && pwd)
PROOF_CORE=$here/..
PROOF_REACHED=
names=
while [ $# -gt 0 ]; do
	case $1 in
	--core)
		PROOF_CORE=$(cd "$2" && pwd)
		shift
		;;
	--reached) PROOF_REACHED=1 ;;
	-h | --help)
		sed -n '3,/^set/{s/^# \{0,1\}//p;}' "$0" | sed '/^set/d'
		exit
		;;
	-*)
		echo "prove.sh: unknown option $1" >&2
		exit 2
		;;
	*)
		[ -e "$here/$1.c" ] || {
			echo "prove.sh: no harness $1" >&2
			exit 2
		}
		names="$names $1"
		;;
	esac
	shift
done
[ -n "$names" ] || names=$(cd "$here" && ls -- *.c | sed 's/\.c$//')

CBMC=$("$here/cbmc.sh")
PROOF_OUT=$(mktemp -d)
trap 'rm -rf "$PROOF_OUT"' EXIT
export CBMC PROOF_CORE PROOF_REACHED PROOF_OUT

# HARNESS N A=1 B=2, a line a run.
runs() {
	for name in $names; do
		sed -n 's/^ \* @each //p; s/^ \*\/$/./p' "$here/$name.c" |
			awk -v name="$name" '
				$1 == "." { if (!n) print name, 0; exit }
				{
					last = $NF
					$NF = ""
					split(last, part, "=")
					if (!split(part[2], range, /\.\./)) next
					if (!(2 in range)) range[2] = range[1]
					for (i = range[1]; i <= range[2]; i++)
						print name, ++n, $0 part[1] "=" i
					delete range
				}'
	done
}

runs >"$PROOF_OUT/runs"
total=$(wc -l <"$PROOF_OUT/runs")
started=$(date +%s)
xargs -P "${JOBS:-2}" -L 1 "$here/run.sh" <"$PROOF_OUT/runs" |
	while read -r line; do
		echo "$line" >>"$PROOF_OUT/results"
		done=$((${done:-0} + 1))
		# shellcheck disable=SC2086 # words
		set -- $line
		[ ! -t 2 ] || printf '\r\033[K%d of %d runs: %s' "$done" "$total" "$1" >&2
	done
[ ! -t 2 ] || printf '\r\033[K' >&2

want=proved
[ -z "$PROOF_REACHED" ] || want=FAILED
failed=0
printf '%-18s %5s %11s %8s  %s\n' harness runs properties seconds 'what it proves'
for name in $names; do
	proves=$(sed -n 's/^ \* @proves //p' "$here/$name.c")
	awk -v name="$name" -v want="$want" -v proves="$proves" '
		$1 == name { runs++; p += $3; ms += $4; if ($2 != want) bad = bad " " $2 }
		END {
			printf "%-18s %5d %11d %8.1f  %s\n", name, runs, p, ms / 1000,
				bad == "" && runs ? proves : "*** NOT SO:" bad
			exit !(bad == "" && runs)
		}' "$PROOF_OUT/results" || {
		failed=1
		# One counterexample is enough to begin with.
		grep -h -A 3 -e ': FAILURE' -e 'error' "$PROOF_OUT/$name".*.log | head -n 20 >&2 || true
	}
done
awk -v s=$(($(date +%s) - started)) '
	{ p += $3; ms += $4 }
	END { printf "%d properties in %d runs, %.0f s of work, %d s\n", p, NR, ms / 1000, s }' \
	"$PROOF_OUT/results"
exit $failed
