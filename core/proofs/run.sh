#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# One run of cbmc, for prove.sh: prints HARNESS STATUS PROPERTIES SECONDS, and
# keeps what cbmc said in $PROOF_OUT/HARNESS.N.log.
#
# usage: CBMC=... PROOF_CORE=... PROOF_OUT=... run.sh HARNESS N [A=1 ...]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
name=$1
number=$2
shift 2
core=$PROOF_CORE
log=$PROOF_OUT/$name.$number.log
[ $# -gt 0 ] || set -- PROOF_RUN=1

tag() {
	sed -n "s/^ \* @$1 \{0,1\}//p" "$here/$name.c"
}

# shellcheck disable=SC2046,SC2086 # lists of words
set -- $(printf -- '-D%s ' "$@") ${PROOF_REACHED:+-DPROOF_REACHED} \
	-I "$core" -I "$core/include" -I "$core/deps/host" -I "$core/src" -I "$here" \
	--function proof --drop-unused-functions $(tag options) \
	"$here/$name.c"

# Every check but overflow of unsigned numbers where wrapping is meant, and in
# what is not the core.
unsigned_checks() {
	"$CBMC" --unsigned-overflow-check --show-properties "$@" 2>/dev/null |
		awk -v meant=" $(tag wraps) " '
			function flush() { if (id != "") print "--property " id; id = "" }
			/^Property / { flush(); id = $2; sub(/:$/, "", id) }
			/^  file / { ours = index($2, "/src/") || index($2, "/include/") }
			/arithmetic overflow on unsigned/ {
				f = id
				sub(/\..*/, "", f)
				if (!ours || index(meant, " " f " ")) id = ""
			}
			END { flush() }'
}

if grep -q '^ \* @wraps' "$here/$name.c" && [ -z "${PROOF_REACHED:-}" ]; then
	# shellcheck disable=SC2046 # a list of words
	set -- --unsigned-overflow-check $(unsigned_checks "$@") "$@"
fi

# Of the processor: what else the machine does is no reason to fail.
status=0
(ulimit -t "${LIMIT:-600}" && exec "$CBMC" "$@") >"$log" 2>&1 || status=$?
times >"$log.times"
ms=$(tail -n 1 "$log.times" | awk '{ split($1, t, /[ms]/); printf "%d", (60 * t[1] + t[2]) * 1000 }')
properties=$(sed -n 's/^\*\* [0-9]* of \([0-9]*\) failed.*/\1/p' "$log")
case $status in
0) result=proved ;;
10) result=FAILED ;;
137 | 152) result=TIMEOUT ;;
*) result=BROKEN ;;
esac
[ -n "$properties" ] || properties=0
[ "$result$properties" != proved0 ] || result=EMPTY
echo "$name $result $properties $ms"
