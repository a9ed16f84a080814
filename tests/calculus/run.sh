#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Computes delay bounds with the DiscoDNC, an existing network-calculus library,
# and compares them with the committed table, which crates/streams/predict is tested
# against. Maven fetches the library into the cache; nothing is installed.
#
# usage: run.sh [--write]
#   --write        replaces the table
#   PSPACER_CACHE  folder for packages (~/.cache/pspacer)
# Exit status: 0 if the table is what the library computes, else 1.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
version=2.4.3-lkn
repository=${PSPACER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pspacer}/maven
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

mvn --quiet --batch-mode "-Dmaven.repo.local=$repository" \
	org.apache.maven.plugins:maven-dependency-plugin:2.8:get \
	"-Dartifact=de.tum.ei.lkn.eces:discodnc:$version" >"$out/log" 2>&1 || {
	cat "$out/log" >&2
	exit 1
}
classes=$repository/de/tum/ei/lkn/eces/discodnc/$version/discodnc-$version.jar
classes=$classes:$repository/org/apache/commons/commons-math3/3.6.1/commons-math3-3.6.1.jar
{
	echo "# SPDX-License-Identifier: MIT OR Apache-2.0"
	echo "# DiscoDNC $version: total flow analysis, separate flow analysis; made by run.sh --write."
	echo "# A hop is RATE_BPS@LATENCY_NS."
	java -cp "$classes" "$here/Discodnc.java"
} >"$out/bounds.csv"
if [ "${1:-}" = --write ]; then
	cp "$out/bounds.csv" "$here/bounds.csv"
fi
diff -u "$here/bounds.csv" "$out/bounds.csv"
echo "DiscoDNC $version: $(grep -vc -e '^#' -e '^burst' "$here/bounds.csv") chains as in the table"
