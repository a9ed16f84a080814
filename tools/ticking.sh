#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs a command that may print nothing for long, and prints every 15 s that it still runs.
#
# usage: ticking.sh WHAT COMMAND...
set -eu

what=$1
shift
begun=$(date +%s)
while sleep 15 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
	echo "$what: $(($(date +%s) - begun)) s so far"
done &
ticker=$!
trap 'kill $ticker 2>/dev/null || true' EXIT
"$@"
