#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the RPM packages out of the committed tree, and checks them with rpmlint if it is
# installed.
#
# usage: rpm.sh [VERSION]
#   VERSION  of the packages (packaging/version.sh): for tests of updates
#   OUT      where the packages go (build/rpm)
#   WORK     where they are built (build/packages): beside the Debian packages, whose
#            compiled command is taken as it is if the sources are the same
#   BUILT    where the command is compiled (WORK/target)
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
[ $# -le 1 ] || {
	echo "usage: $0 [VERSION]" >&2
	exit 2
}
mkdir -p "${OUT:-$top/build/rpm}"
out=$(cd "${OUT:-$top/build/rpm}" && pwd)
command -v rpmbuild >/dev/null || {
	echo "rpm.sh: rpmbuild is missing: install the package rpm or rpm-build" >&2
	exit 1
}
version=${1:-$("$top/packaging/version.sh")}
tree=$("$top/packaging/tree.sh" "${WORK:-$top/build/packages}" "$version")
work=$(dirname "$tree")
export CARGO_HOME="${CARGO_HOME:-${HOME:?}/.cargo}" CARGO_TARGET_DIR="${BUILT:-$work/target}"
SOURCE_DATE_EPOCH=$(git -C "$top" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
rpm=$work/rpm
rm -rf "$rpm"
mkdir -p "$rpm/SOURCES"
tar -c -f "$rpm/SOURCES/pspacer-$version.tar" -C "$work" --sort=name --owner=0 --group=0 --numeric-owner "$(basename "$tree")"

# On Debian the compilers are no RPM packages, so the database of packages knows none.
nodeps=
[ ! -e /etc/debian_version ] || nodeps=--nodeps
# The tree is unpacked where it was, so the command compiled there is up to date.
rpmbuild -bb $nodeps --define "_topdir $rpm" --define "_builddir $work" \
	--define "_rpmdir $rpm/RPMS" --define "package_version $version" --define "tree $tree" \
	"$tree/packaging/rpm/pspacer.spec"
rm -f "$out"/*.rpm
find "$rpm/RPMS" -name '*.rpm' -exec mv -t "$out" {} +
if command -v rpmlint >/dev/null; then
	rpmlint --ignore-unused-rpmlintrc -r "$top/packaging/rpm/pspacer.rpmlintrc" "$out"/*.rpm
else
	echo "rpm.sh: rpmlint is not installed, so nothing has checked the packages" >&2
fi
ls "$out"/*.rpm
