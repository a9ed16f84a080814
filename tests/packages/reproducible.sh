#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the Debian packages twice, in other folders, at other times, with another umask,
# another time zone and another language, each from nothing, and compares the bytes of all
# packages. Prints their digests.
#
# usage: reproducible.sh [FOLDER]   FOLDER is made, and removed if all is the same
#   FIRST   packages of this commit that were built elsewhere already: builds once
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "${1:-$top/build/reproducible}"
work=$(cd "${1:-$top/build/reproducible}" && pwd)
rm -rf "$work/a" "$work/deeper" "$work/first" "$work/second"

build() {
	echo "reproducible: builds in $1, umask $2"
	(umask "$2" && OUT=$3 WORK=$1 "$top/packaging/deb.sh" >"$work/log" 2>&1) || {
		tail -n 30 "$work/log" >&2
		echo "reproducible: the packages do not build: $work/log" >&2
		exit 1
	}
}
if [ -n "${FIRST:-}" ]; then
	mkdir -p "$work/first"
	cp "$FIRST"/*.deb "$FIRST"/*.tar.* "$work/first/"
else
	TZ=UTC0 LC_ALL=C.UTF-8 build "$work/a" 022 "$work/first"
fi
TZ=XYZ-13 LC_ALL=C build "$work/deeper/and/longer" 077 "$work/second"

same=yes
for file in "$work"/first/*.deb "$work"/first/*.tar.*; do
	name=$(basename "$file")
	first=$(sha256sum <"$file" | cut -d ' ' -f 1)
	second=$(sha256sum <"$work/second/$name" | cut -d ' ' -f 1)
	if [ "$first" = "$second" ]; then
		echo "same      $first $name"
	else
		same=no
		echo "different $first $name"
		echo "          $second"
	fi
done
if [ $same = no ]; then
	echo "reproducible: packages differ: diffoscope $work/first $work/second" >&2
	exit 1
fi
rm -rf "$work/a" "$work/deeper" "$work/first" "$work/second"
