#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the Debian packages out of the committed tree, and checks them with lintian if it
# is installed.
#
# usage: deb.sh [VERSION]
#   VERSION   of the packages (packaging/version.sh): for tests of upgrades
#   OUT       where the packages go (build/deb)
#   WORK      where they are built (build/packages)
#   BUILT     where the command is compiled (WORK/target)
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
out=${OUT:-$top/build/deb}
work=${WORK:-$top/build/packages}
die() {
	echo "deb.sh: $*" >&2
	exit 1
}
[ $# -le 1 ] || {
	echo "usage: $0 [VERSION]" >&2
	exit 2
}
command -v dpkg-buildpackage >/dev/null || die "dpkg-buildpackage is missing: install dpkg-dev"

version=${1:-$("$top/packaging/version.sh")}
tree=$("$top/packaging/tree.sh" "$work" "$version")
export CARGO_HOME="${CARGO_HOME:-${HOME:?}/.cargo}" CARGO_TARGET_DIR="${BUILT:-$work/target}"
cd "$tree"
# What the packages hold is listed in Build-Depends; dpkg-buildpackage says what is missing.
# The compiler of Rust is tools/rust.sh's choice.
dpkg-buildpackage --build=full --no-sign --no-pre-clean

mkdir -p "$out"
rm -f "$out"/*.deb "$out"/*.dsc "$out"/*.changes "$out"/*.buildinfo "$out"/*.tar.*
for file in "$work"/*_"$version"_*.deb "$work/pspacer_$version"*.dsc "$work/pspacer_$version"*.changes \
	"$work/pspacer_$version"*.buildinfo "$work/pspacer_$version".tar.*; do
	[ ! -e "$file" ] || mv "$file" "$out/"
done
if command -v lintian >/dev/null; then
	lintian --fail-on error "$out"/*.changes
else
	echo "deb.sh: lintian is not installed, so nothing has checked the packages" >&2
fi
ls "$out"/*.deb
