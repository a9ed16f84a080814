#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Collects what a release publishes: packages for Debian and RPM, the image, the sources, the list of crates
# (CycloneDX), and the sums of all of them. Refuses before it writes what would be no release: changes that
# are not committed, a change log without a date or with a newer section, packages of another version or
# older than the commit.
#
# usage: release.sh [--check]
#   --check  refuse or accept, and write nothing
#   DEBS     the Debian packages (build/deb, of `make deb`)
#   RPMS     the RPM packages (build/rpm, of `make rpm`)
#   IMAGE    the folder of the image (build/image, of `make image`)
#   OUT      what is published (build/release); is made anew
#
# Exit status: 0 all is there; 1 this is no release, or something is missing; 2 usage.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
debs=${DEBS:-$top/build/deb}
rpms=${RPMS:-$top/build/rpm}
image=${IMAGE:-$top/build/image}
out=${OUT:-$top/build/release}
die() {
	echo "release.sh: $*" >&2
	exit 1
}
check=
case ${1:-} in
'') ;;
--check) check=1 ;;
-h | --help)
	sed -n '3,/^set/{s/^# \{0,1\}//p;}' "$0"
	exit
	;;
*)
	echo "usage: $0 [--check]" >&2
	exit 2
	;;
esac

version=$("$top/packaging/version.sh")
case $version in *'~'*) die "Cargo.toml: version $version is none of a release: expected a number as 0.2.0" ;; esac
changed=$(git -C "$top" status --porcelain)
[ -z "$changed" ] || die "not committed: $(echo "$changed" | head -n 1)"
newest=$(sed -n 's/^## //p' "$top/CHANGELOG.md" | head -n 1)
[ "$newest" = "$version" ] ||
	die "CHANGELOG.md: its newest section is '$newest', expected '$version': this commit has more than that release"
dated=$(sed -n "/^## $version\$/{n;p;}" "$top/CHANGELOG.md")
echo "$dated" | grep -Eq '^20[0-9]{2}-[0-9]{2}-[0-9]{2}\.$' ||
	die "CHANGELOG.md: below '## $version' stands '$dated', expected a date as 2027-01-31."
[ -z "$check" ] || exit 0

# Packages are of the commit's time at least, so older ones hold something else.
commit=$(git -C "$top" log -1 --format=%ct)
# fresh WHAT TARGET FILE...: dies if a file is not there, or is older than the commit.
fresh() {
	what=$1 target=$2
	shift 2
	for file in "$@"; do
		[ -e "$file" ] || die "$what of $version: none in $(dirname "$file"): run 'make $target' first"
		[ "$(stat -c %Y "$file")" -ge "$commit" ] || die "$file is older than the commit: run 'make $target' again"
	done
}
fresh "Debian packages" deb "$debs"/*_"$version"_*.deb
fresh "RPM packages" rpm "$rpms"/*-"$version"-*.rpm
fresh "the image" image "$image/pspacer-$version.oci.tar"

rm -rf "$out"
mkdir -p "$out"
cp "$debs"/*_"$version"_*.deb "$rpms"/*-"$version"-*.rpm "$image/pspacer-$version.oci.tar" "$out/"
git -C "$top" -c tar.umask=022 archive --format=tar --prefix="pspacer-$version/" HEAD |
	gzip -n -9 >"$out/pspacer-$version.tar.gz"
(cd "$top" && packaging/crates.pl sbom) >"$out/pspacer-$version.cdx.json"
sums=$(cd "$out" && LC_ALL=C && export LC_ALL && sha256sum -- *)
echo "$sums" >"$out/SHA256SUMS"
echo "$out: $(wc -l <"$out/SHA256SUMS") files, and SHA256SUMS"
