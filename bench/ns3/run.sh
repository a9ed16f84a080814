#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Runs the same connections in ns-3, in the simulator and in the laboratory, and writes goodput,
# losses, speed and memory of each to docs/understand/simulator-benchmark.md. pip fetches ns-3, in
# this version, into the cache, and nothing is installed. Figures count only from an idle machine.
#
# usage: run.sh [compare.py's options]
#   PSPACER        the program (target/release/pspacer)
#   PSPACER_CACHE  folder for packages (~/.cache/pspacer)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
ns3=3.44.post0
cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pspacer}/ns3-$ns3
for tool in g++ python3 "${PSPACER:=${CARGO_TARGET_DIR:-$top/target}/release/pspacer}"; do
	command -v "$tool" >/dev/null || {
		echo "$tool: expected to be installed" >&2
		exit 2
	}
done
if [ ! -e "$cache/made" ]; then
	rm -rf "$cache"
	python3 -m venv "$cache"
	"$cache/bin/pip" install --quiet --no-deps "ns3==$ns3"
	touch "$cache/made"
fi
for package in "$cache"/lib/python3*/site-packages/ns3; do :; done
libraries=
for name in core network internet point-to-point applications traffic-control stats bridge; do
	libraries="$libraries -lns3.44-$name"
done
# shellcheck disable=SC2086 # a word each
g++ -std=c++20 -O2 "-I$package/include" "$here/chain.cc" -o "$cache/chain" "-L$package/lib64" \
	"-Wl,-rpath,$package/lib64" -Wl,--allow-shlib-undefined $libraries
exec python3 "$here/compare.py" --ns3 "$cache/chain" --pspacer "$PSPACER" \
	--version "${ns3%%.post*}" --out "$top/docs/understand/simulator-benchmark.md" "$@"
