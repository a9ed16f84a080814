# SPDX-License-Identifier: MIT OR Apache-2.0
# Functions for tests that install packages into a Debian root of their own, sourced by the
# scripts beside it. They need root and mmdebstrap. Packages come from this machine's
# archive (tools/archive.sh), nothing is installed on this machine, and the roots are
# removed at the end. KEEP=1 keeps them.

packages_top=$(cd "$(dirname "$0")/../.." && pwd)
packages_work=

die() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

# clean_roots: unmounts and removes what make_root made. What is still mounted may be this
# machine's own folder, and then nothing is removed.
clean_roots() {
	status=$?
	trap - EXIT INT TERM HUP
	for root in "$packages_work"/*; do
		leave_root
	done
	if grep -q " $packages_work/" /proc/mounts; then
		echo "$(basename "$0"): something is still mounted below $packages_work, which is left there" >&2
	elif [ "${KEEP:-0}" = 1 ]; then
		echo "$(basename "$0"): the roots are in $packages_work" >&2
	else
		rm -rf "$packages_work"
	fi
	exit $status
}

# leave_root: unmounts what make_root mounted in $root, also if a program there still runs.
leave_root() {
	for mounted in dev proc; do
		! mountpoint -q "$root/$mounted" || umount "$root/$mounted" 2>/dev/null || umount -l "$root/$mounted"
	done
}

# begin_roots: checks what make_root needs, and makes the folder of the roots.
begin_roots() {
	[ "$(id -u)" = 0 ] || die "needs root, for chroot and mounts"
	command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: install the package of that name"
	packages_work=$(mktemp -d "${TMPDIR:-/var/tmp}/packages.XXXXXX")
	trap clean_roots EXIT
	trap 'exit 130' INT TERM HUP
}

# make_root NAME PACKAGES SUITE...: makes the smallest root of the first suite with these
# packages (a list with commas), with all suites in its sources, and sets $root.
make_root() {
	root=$packages_work/$1
	included=$2
	shift 2
	"$packages_top/tools/archive.sh" "$@" >"$packages_work/debian.sources"
	mmdebstrap --quiet --variant=minbase --include="$included" "$1" "$root" "$packages_work/debian.sources"
	rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
	cp "$packages_work/debian.sources" "$root/etc/apt/sources.list.d/"
	cp /etc/resolv.conf /etc/hosts "$root/etc/"
	# A service must not start in a root.
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	# The kernel's release there is no package's, so that DKMS builds only for those asked for.
	mount -t proc proc "$root/proc"
	mount --bind /dev "$root/dev"
}

# inside COMMAND...: runs a command in $root.
inside() {
	env -i HOME=/var/tmp LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@" </dev/null
}

# quietly COMMAND...: prints the output of a command only if it fails.
quietly() {
	"$@" >"$packages_work/log" 2>&1 || {
		cat "$packages_work/log" >&2
		return 1
	}
}
