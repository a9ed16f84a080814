#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the module by DKMS against every kernel header package for amd64 in the archive,
# in a root of the suite that has it, and prints a table. A kernel for which it does not
# build, or with warnings, is a failure.
#
# usage: headers.sh [SUITE...]   bookworm, trixie, forky, sid, each with its backports
#   DEBS     the packages (build/deb, of `make deb`)
#   FLAVOUR  of the kernels (amd64)
#   KEEP=1   keeps the roots and the logs
set -eu

. "$(dirname "$0")/root.sh"
debs=${DEBS:-$packages_top/build/deb}
flavour=${FLAVOUR:-amd64}
[ $# -gt 0 ] || set -- bookworm trixie forky sid
ls "$debs"/psp-dkms_*_all.deb >/dev/null 2>&1 || die "no package psp-dkms in $debs: run 'make deb' first"
module=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$packages_top/kernel/dkms.conf")

# sources_of SUITE: the suite, and its backports and security updates if the archive has them.
sources_of() {
	case $1 in
	bookworm | trixie) echo "$1 $1-backports $1-updates" ;;
	*) echo "$1" ;;
	esac
}

begin_roots
table=$packages_work/table
seen=" "
failed=0
printf '%-12s %-36s %-8s %s\n' suite kernel built warnings | tee "$table"
for suite in "$@"; do
	# shellcheck disable=SC2046 # a list
	make_root "$suite" dkms,gcc,libc6-dev,make,kmod $(sources_of "$suite")
	quietly inside apt-get update -qq
	cp "$debs"/psp-dkms_*_all.deb "$root/psp-dkms.deb"
	quietly inside apt-get install -y -qq --no-install-recommends /psp-dkms.deb
	packages=$(inside apt-cache pkgnames linux-headers- | grep -E "^linux-headers-[0-9].*[0-9]-$flavour\$" | sort -V)
	[ -n "$packages" ] || die "$suite: the archive has no package linux-headers-VERSION-$flavour"
	for package in $packages; do
		kernel=${package#linux-headers-}
		# The same kernel may be in several suites.
		case $seen in *" $kernel "*) continue ;; esac
		seen="$seen$kernel "
		# The list of packages names some that no suite has any more.
		inside apt-get install -y -qq -s "$package" >/dev/null 2>&1 || continue
		log=$packages_work/$kernel.log
		built=no
		# DKMS builds for new headers by itself; the line below makes that sure.
		if inside apt-get install -y -qq --no-install-recommends "$package" >"$log" 2>&1 &&
			inside dkms build "sch_psp/$module" -k "$kernel" --force >>"$log" 2>&1 &&
			inside sh -c "ls /var/lib/dkms/sch_psp/$module/$kernel/*/module/sch_psp.ko*" >>"$log" 2>&1; then
			built=yes
		fi
		inside sh -c "cat /var/lib/dkms/sch_psp/$module/$kernel/*/log/make.log /var/lib/dkms/sch_psp/$module/build/make.log 2>/dev/null || true" >"$log.make"
		warnings=$(grep -E 'warning:|error:' "$log.make" | sort -u | wc -l)
		printf '%-12s %-36s %-8s %s\n' "$suite" "$kernel" $built "$warnings" | tee -a "$table"
		if [ $built = no ] || [ "$warnings" != 0 ]; then
			failed=$((failed + 1))
			grep -E 'warning:|error:' "$log.make" | sort -u | head -n 10 | sed 's/^/  /'
			[ $built = yes ] || tail -n 5 "$log" | sed 's/^/  /'
		fi
		inside sh -c "apt-get purge -y -qq $package && apt-get autoremove --purge -y -qq 'linux-headers-*'" >>"$log" 2>&1 || true
	done
	leave_root
	[ "${KEEP:-0}" = 1 ] || rm -rf --one-file-system "$root"
done
kernels=$(($(wc -l <"$table") - 1))
echo "$kernels kernels, $failed with a complaint"
[ $kernels -gt 0 ] && [ $failed = 0 ]
