#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs all findings, or those that are named, and says which behaviour has changed.
#
# usage: all.sh [NAME...]
# exit status: 0 all are as noted, 1 something has changed or could not run
set -eu

cd "$(dirname "$0")"
given=${PSPACER_FINDINGS_CACHE:-}
kept=${given:-$(mktemp -d)}
export PSPACER_FINDINGS_CACHE="$kept"
log=$(mktemp)
trap 'rm -f "$log"; [ "$kept" = "$given" ] || rm -rf "$kept"' EXIT
[ $# -gt 0 ] || set -- *.sh
passed=0 failed=0
for name in "$@"; do
	case $name in
	lib.sh | all.sh) continue ;;
	esac
	begun=$(date +%s)
	sh "./${name%.sh}.sh" >"$log" 2>&1 && status=0 || status=$?
	took=$(($(date +%s) - begun))
	case $status in
	0) word='as noted' passed=$((passed + 1)) ;;
	1) word='CHANGED' failed=$((failed + 1)) ;;
	3) word='GONE: a pinned package is not to be had' failed=$((failed + 1)) ;;
	*) word='DID NOT RUN' failed=$((failed + 1)) ;;
	esac
	echo "${name%.sh}: $word, $took s"
	[ $status = 0 ] || sed 's/^/    /' "$log"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
