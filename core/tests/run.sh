#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The core on other architectures: arm64, i686, which has 32 bits, and s390x, which is
# big endian. The same operations (decisions.c) have the same decisions there as here, with each of the
# two hosts' divisions: deps/host, and deps/kernel with linux/ beside this in the
# place of the kernel's headers. Programs of other architectures run under
# qemu-user.
#
# usage: run.sh [OUT]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
core=$(dirname "$here")
out=${1:-$here/../../build/cross}
mkdir -p "$out"
out=$(cd "$out" && pwd)

expected=
# decide NAME COMPILER RUNNER...: builds for NAME and compares with the first.
decide() {
	name=$1
	compiler=$2
	shift 2
	for deps in host kernel; do
		program=$out/decisions-$name-$deps
		"$compiler" -std=gnu11 -O2 -Wall -Wextra -Werror -static \
			-I "$core/include" -I "$core/deps/$deps" -I "$here" \
			-o "$program" "$here/decisions.c" "$core/pace.c"
		found=$("$@" "$program")
		expected=${expected:-$found}
		if [ "$found" != "$expected" ]; then
			printf '%s\n' "$expected" >"$out/expected"
			printf '%s\n' "$found" >"$out/found"
			diff "$out/expected" "$out/found" >&2 || :
			echo "cross: $name, deps/$deps: expected the decisions of $(uname -m)" >&2
			exit 1
		fi
		echo "cross: $name, deps/$deps: $(printf '%s\n' "$found" | wc -l) runs, the same decisions"
	done
}

decide "$(uname -m)" cc env
decide arm64 aarch64-linux-gnu-gcc qemu-aarch64
decide i686 i686-linux-gnu-gcc qemu-i386
decide s390x s390x-linux-gnu-gcc qemu-s390x

# How queues share a clock, in every order; and what breaks that is noticed.
build_turns() {
	cc -std=gnu11 -O2 -Wall -Wextra -Werror -Wno-unused-function \
		-I "$core/include" -I "$here/turns" -DSTEPS="\"$1\"" \
		-o "$out/turns" "$here/turns/turns.c"
}
build_turns "$core/src/steps.c"
"$out/turns" "${TIMES:-1}"
broken=0
while IFS='|' read -r from to; do
	broken=$((broken + 1))
	sed "s|$from|$to|" "$core/src/steps.c" >"$out/steps.c"
	if cmp -s "$out/steps.c" "$core/src/steps.c"; then
		echo "turns: nothing to break: $from" >&2
		exit 1
	fi
	build_turns "$out/steps.c"
	if "$out/turns" >"$out/turns.log"; then
		echo "turns: not noticed: $from -> $to" >&2
		exit 1
	fi
done <<'END'
return until - p->free_from_ps|return p->end_ps - p->free_from_ps + 1
&until, FREE_NAMED)|\&until, FREE_NOTHING)
sum += take_from(p, now)|take_from(p, now)
step_ps - left_ps)|step_ps)
pace_write_once(p->free_from_ps, from);|(void)from;
while (!pace_atomic_cmpxchg(&k->clock_ps, &seen, start + ps))|while (pace_atomic_xchg(\&k->clock_ps, start + ps) == 1)
END
echo "turns: $broken mistakes, each noticed"
