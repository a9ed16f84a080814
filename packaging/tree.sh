#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Writes the committed tree into a folder, with debian/ filled in: what the packages are
# built from. Changes that are not committed are left out. All times are that of the last
# commit, so the same commit gives the same bytes.
#
# usage: tree.sh FOLDER [VERSION]
#   FOLDER   is made; pspacer is replaced in it. Its name has no version, because compilers
#            are told the folder, and would compile everything anew for another
#   VERSION  of the packages (packaging/version.sh)
#
# Prints the folder of the tree.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
die() {
	echo "tree.sh: $*" >&2
	exit 1
}

[ $# -ge 1 ] && [ $# -le 2 ] || {
	echo "usage: $0 FOLDER [VERSION]" >&2
	exit 2
}
version=${2:-$("$top/packaging/version.sh")}
case $version in
*[!0-9a-z.~+]* | [!0-9]* | '') die "version '$version': expected digits, then letters, '.', '~' or '+'" ;;
esac
git -C "$top" rev-parse --verify -q HEAD >/dev/null ||
	die "$top is not a clone with a commit: packages are built from what is committed"
[ -z "$(git -C "$top" status --porcelain --untracked-files=no)" ] ||
	echo "tree.sh: changes that are not committed are left out" >&2
mkdir -p "$1"
tree=$(cd "$1" && pwd)/pspacer
rm -rf "$tree"
# Modes do not depend on the user's umask.
umask 022
mkdir "$tree"
git -C "$top" -c tar.umask=022 archive --format=tar HEAD | tar -x -f - -C "$tree"

debian=$tree/debian
cp -R "$tree/packaging/debian" "$debian"
mkdir "$debian/source"
echo '3.0 (native)' >"$debian/source/format"
cp "$tree/kernel/dkms.conf" "$debian/psp-dkms.dkms"
maintainer=$(sed -n 's/^Maintainer: //p' "$debian/control")
cat >"$debian/changelog" <<END
pspacer ($version) unstable; urgency=medium

  * CHANGELOG.md says what is new.

 -- $maintainer  $(TZ=UTC0 git -C "$top" log -1 --date='format-local:%a, %d %b %Y %H:%M:%S +0000' --format=%cd)
END
find "$debian" -exec touch -h -d "@$(git -C "$top" log -1 --format=%ct)" {} +
echo "$tree"
