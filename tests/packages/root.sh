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
	for mounted in "$root/dev" "$root/proc" "$root"; do
		! mountpoint -q "$mounted" || umount "$mounted" 2>/dev/null || umount -l "$mounted"
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

number=0
failed=0
# check WHAT COMMAND...: a line of TAP; the command's output if it fails.
check() {
	what=$1
	shift
	number=$((number + 1))
	if "$@" >"$packages_work/said" 2>&1; then
		echo "ok $number - $what"
	else
		failed=$((failed + 1))
		echo "not ok $number - $what"
		sed 's/^/# /' "$packages_work/said"
	fi
}

# end_checks: the plan of TAP; fails if a check has.
end_checks() {
	echo "1..$number"
	[ $failed = 0 ]
}

# says STATUS TEXT COMMAND...: exit status, and part of what is said.
says() {
	expected=$1
	text=$2
	shift 2
	said=$(inside "$@" 2>&1) && status=0 || status=$?
	printf '%s\nexit status %s, expected %s and: %s\n' "$said" $status "$expected" "$text"
	case " $expected " in *" $status "*) ;; *) return 1 ;; esac
	printf '%s\n' "$said" | grep -q -F -e "$text"
}

# library [VARIABLES]: a program is compiled with libpace alone.
library() {
	cat >"$root/tmp/uses.c" <<-'END'
		#include <pace/pace_sched.h>
		#include <stdio.h>

		int main(void)
		{
			struct pace_decision (*volatile next)(struct pace_sched *, u64) = pace_next;

			printf("%zu %d\n", sizeof(struct pace_sched), next != NULL);
			return 0;
		}
	END
	# shellcheck disable=SC2086 # a list
	inside env ${1:-} sh -c 'cd /tmp && cc -Wall -Werror -o uses uses.c $(pkg-config --cflags --libs pace) && ./uses' && status=0 || status=$?
	rm -f "$root/tmp/uses.c" "$root/tmp/uses"
	return $status
}

# The program of the library's own test, compiled and run with the packages alone, and a
# manager on loopback that it asks.
reserve() {
	cp "$packages_top/crates/streams/psp-reserve/tests/use.c" "$root/tmp/"
	cat >"$root/tmp/net.toml" <<-'END'
		[[host]]
		name = "a"
		[[host]]
		name = "b"

		[[segment]]
		name = "s"
		medium = "shared"
		rate = "100mbit"
		members = ["a", "b"]
	END
	cat >"$root/tmp/reserve.sh" <<-'END'
		set -eu
		cd /tmp
		cc -Wall -Werror -o use use.c $(pkg-config --cflags --libs psp_reserve)
		pspacer manager --topology net.toml --store memory: --listen 127.0.0.1:0 --address-file address &
		trap "kill $!" EXIT
		for i in $(seq 200); do [ -s address ] && break; sleep 0.1; done
		./use "$(cat address)"
	END
	# shellcheck disable=SC2086 # a list
	inside env ${1:-} sh /tmp/reserve.sh && status=0 || status=$?
	for file in use use.c net.toml reserve.sh address; do rm -f "$root/tmp/$file"; done
	return $status
}

# check_command PREFIX: checks of the command and of what comes with it.
check_command() {
	check "$1the command runs" says 0 pspacer pspacer --version
	check "$1it knows the experiments" says 0 busy-host pspacer lab list
	check "$1it predicts" says 0 '%' pspacer predict --beta 0.2 --hops 4 --period 10ms
	# The running kernel is this machine's, which has no module.
	check "$1doctor looks and finds" says "0 1" "" pspacer doctor
	check "$1manual pages are there" says 0 psp man -w pspacer tc-psp
	check "$1bash completes" says 0 _pspacer bash -c '. /usr/share/bash-completion/completions/pspacer && complete -p pspacer'
}
