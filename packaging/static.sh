#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that a program needs no file of the machine that runs it: no interpreter, no library.
# A program without a fixed address (static PIE) has a dynamic section, which moves it and names none.
#
# usage: static.sh PROGRAM
set -eu

[ $# = 1 ] || {
	echo "usage: $0 PROGRAM" >&2
	exit 2
}
headers=$(LC_ALL=C readelf --wide --program-headers --dynamic "$1")
bad=$(printf '%s\n' "$headers" | grep -e '^ *INTERP' -e '(NEEDED)' || true)
[ -z "$bad" ] || {
	echo "static.sh: $1: expected neither an interpreter nor a library that it needs, and it has:" >&2
	printf '%s\n' "$bad" >&2
	exit 1
}
