#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Does what a newcomer does, on an empty Debian: makes the smallest root of a suite, puts
# the committed tree, git and make there, and runs make. It needs root, and mmdebstrap or
# debootstrap. Packages come from this machine's archive. The root is removed at the end.
#
# usage: run.sh SUITE [TARGET...]
#   SUITE    bookworm (Debian 12) or trixie (Debian 13)
#   TARGET   targets of make, one after the other (demo test)
#   SPARE=1  uses one processor, and only when nothing else wants it
#   KEEP=1   keeps the root
#   GUESTS=1 gives it what this machine remembers of guests that ran, so only others boot (after make test-all)
set -eu

usage() {
	echo "usage: $0 SUITE [TARGET...]" >&2
	exit 2
}
die() {
	echo "fresh: $*" >&2
	exit 1
}

[ $# -ge 1 ] || usage
suite=$1
shift
[ $# -gt 0 ] || set -- demo test
top=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] || die "needs root, for chroot and mounts"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/fresh-$suite.XXXXXX")
root=$work/root
child=

# clean: removes the root, unless something is still mounted in it: that may be this
# machine's own folder.
clean() {
	status=$?
	trap - EXIT INT TERM HUP
	[ -z "$child" ] || { kill $child && wait $child; } 2>/dev/null || true
	for mounted in dev/shm dev/pts dev sys proc; do
		! mountpoint -q "$root/$mounted" || umount "$root/$mounted" || umount -l "$root/$mounted"
	done
	if grep -q " $work/" /proc/mounts; then
		echo "fresh: something is still mounted below $work, which is left there" >&2
	elif [ "${KEEP:-0}" = 1 ]; then
		echo "fresh: the root is $root"
	else
		rm -rf "$work"
	fi
	exit $status
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

"$top/tools/archive.sh" "$suite" >"$work/debian.sources"
echo "fresh: an empty $suite in $root"
if command -v mmdebstrap >/dev/null; then
	mmdebstrap --quiet --variant=minbase --include=git,make "$suite" "$root" "$work/debian.sources"
elif command -v debootstrap >/dev/null; then
	uri=$(sed -n 's/^URIs: //p' "$work/debian.sources")
	debootstrap --variant=minbase --include=git,make "$suite" "$root" "$uri" >"$work/log" ||
		die "debootstrap failed: $(tail -n 5 "$work/log")"
else
	die "mmdebstrap or debootstrap is missing: install the package of that name"
fi
rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
cp "$work/debian.sources" "$root/etc/apt/sources.list.d/"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
# This machine may trust more than Debian's certificates, for example a proxy's.
trusted=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
[ ! -f "$trusted" ] || install -D -m 644 "$trusted" "$root/usr/local/share/ca-certificates/machine.crt"

mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys" 2>/dev/null || true # some containers forbid it
mount --bind /dev "$root/dev"
[ ! -d /dev/pts ] || mount --bind /dev/pts "$root/dev/pts"
[ ! -d /dev/shm ] || mount --bind /dev/shm "$root/dev/shm"

newcomer=$root/var/lib/newcomer
mkdir -p "$newcomer"
if [ "${GUESTS:-0}" = 1 ]; then
	cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/pspacer}
	mkdir -p "$newcomer/.cache/pspacer"
	cp -a "$cache/guests" "$newcomer/.cache/pspacer/"
fi
git clone -q --no-hardlinks "$top" "$root/pspacer"

spare=
[ "${SPARE:-0}" != 1 ] || spare='nice -n 19 taskset -c 0'
for target in "$@"; do
	begin=$(date +%s)
	echo "fresh: make $target on $suite"
	# make runs as root, because an empty Debian has no sudo to install packages with.
	$spare env -i HOME=/var/lib/newcomer LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		chroot "$root" make --no-print-directory -C /pspacer "$target" </dev/null &
	child=$! # in the background, so that the trap runs at once on a signal
	wait $child ||
		die "make $target failed on $suite after $(($(date +%s) - begin)) s"
	child=
	echo "fresh: make $target passed on $suite in $(($(date +%s) - begin)) s"
done
echo "fresh: disk: $(du -shc "$root/pspacer/target" "$root/pspacer/build" 2>/dev/null | tail -n 1 | cut -f 1) in the tree, $(du -sh "$newcomer/.cache" 2>/dev/null | cut -f 1) in the cache"
echo "fresh: processor time of all, user and system:"
times | tail -n 1
