#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs the Debian packages in clean roots, updates them from a lower version, beside a
# configuration that was changed and a program that runs, uses them, purges them, and compares
# the lists of files before and after. Prints TAP. The module is built by DKMS there and never
# loaded.
#
# usage: debian.sh [SUITE...]     bookworm and trixie
#   DEBS   the packages (build/deb, of `make deb`)
#   OLD    the packages of a lower version (build/deb-old), made if there are none
#   KEEP=1 keeps the roots
set -eu

. "$(dirname "$0")/root.sh"
debs=${DEBS:-$packages_top/build/deb}
old=${OLD:-$packages_top/build/deb-old}
[ $# -gt 0 ] || set -- bookworm trixie
ls "$debs"/pspacer_*_amd64.deb >/dev/null 2>&1 || die "no packages in $debs: run 'make deb' first"
lower deb "$old"
names='pspacer psp-dkms iproute2-psp libpace-dev libpsp-reserve0 libpsp-reserve-dev'
version=$(dpkg-deb -f "$debs"/pspacer_*_amd64.deb Version)
module=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$packages_top/kernel/dkms.conf")

# files: lists what is in the root, but for what every installation changes.
files() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./sys -o -path ./packages \
		-o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache \
		-o -path ./var/log -o -path ./tmp -o -path './var/lib/dkms/mok.*' \) -prune -o -print | sort)
}

installed() {
	for name in $names; do
		found=$(inside dpkg-query -W -f '${db:Status-Status} ${Version}' "$name")
		[ "$found" = "installed $1" ] || {
			echo "$name: $found, expected: installed $1"
			return 1
		}
	done
}

built() {
	for kernel in $kernels; do
		inside sh -c "ls /lib/modules/$kernel/updates/dkms/sch_psp.ko*" || return 1
		inside modinfo -k "$kernel" sch_psp | grep -qx "version: *$module" || {
			inside modinfo -k "$kernel" sch_psp
			return 1
		}
	done
}

none_enabled() {
	for file in $enabled; do
		[ ! -L "$root/$file" ] || {
			echo "/$file is there"
			return 1
		}
	done
}

begin_roots
for suite in "$@"; do
	# Everything that the packages depend on, so that what is left over is theirs alone.
	make_root "$suite" iproute2,dkms,gcc,libc6-dev,make,kmod,openssl,pkg-config,man-db,bash-completion,linux-headers-cloud-amd64 "$suite"
	kernels=$(inside sh -c 'ls /lib/modules')
	mkdir -p "$root/packages/old" "$root/packages/new"
	cp "$old"/*.deb "$root/packages/old/"
	cp "$debs"/*.deb "$root/packages/new/"
	rm -f "$root"/packages/*/*-dbgsym_*.deb
	# DKMS makes its signing key and depmod its lists with the first module; both stay. Old DKMS
	# makes no key before.
	quietly inside dkms generate_mok || true
	for kernel in $kernels; do
		quietly inside depmod "$kernel"
	done
	files >"$packages_work/before"

	check "$suite: installs the lower version" inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/old/*.deb'
	check "$suite: the lower version is there" installed "$(dpkg-deb -f "$old"/pspacer_*_amd64.deb Version)"
	check "$suite: its configuration is changed, a program runs" change_configuration
	check "$suite: updates" inside sh -c 'apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold /packages/new/*.deb'
	check "$suite: the version is there" installed "$version"
	check "$suite: DKMS built the module for $(echo $kernels)" built
	check "$suite: configuration and what runs are kept" kept
	check "$suite: systemd reads the units again" told daemon-reload
	end_change
	check_command "$suite: "
	check "$suite: tc knows psp" says 1 'Usage: ... psp' tc qdisc add dev none0 root psp help
	check "$suite: tc refuses bad words" says 1 'psp: ' tc qdisc add dev none0 root psp default 10000
	check "$suite: a program is compiled with the library" library
	check "$suite: a program in C reserves at a manager" reserve
	with_systemd
	# shellcheck disable=SC2086 # a list
	check "$suite: purges" inside apt-get purge -y -qq $names
	check "$suite: units were stopped, and systemd read the rest again" \
		told 'stop.*pspacer-agent' 'stop.*pspacer-manager' daemon-reload
	without_systemd
	check "$suite: no unit is enabled" none_enabled
	check "$suite: files of the administrator stay" administrator_leaves
	files >"$packages_work/after"
	check "$suite: nothing is left" diff "$packages_work/before" "$packages_work/after"
	leave_root
	[ "${KEEP:-0}" = 1 ] || rm -rf --one-file-system "$root"
done
end_checks
