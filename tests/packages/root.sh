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

# clean_roots [STATUS]: unmounts and removes what make_root made. What is still mounted may be this
# machine's own folder, and then nothing is removed.
clean_roots() {
	status=${1:-$?}
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
	[ ! -e "$root/tmp/manager" ] || kill "$(cat "$root/tmp/manager")" 2>/dev/null || :
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

# lower KIND FOLDER: builds the packages (deb, rpm) with a lower version, if there are none in FOLDER.
lower() {
	! ls "$2"/pspacer[-_]*."$1" >/dev/null 2>&1 || return 0
	OUT="$2" "$packages_top/packaging/$1.sh" 0.0.1 >"$packages_top/build/$1-old.log" 2>&1 ||
		die "the packages of a lower version do not build: build/$1-old.log"
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

# topology: writes what a manager starts with.
topology() {
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
}

# The program of the library's own test, compiled and run with the packages alone, and a
# manager on loopback that it asks.
reserve() {
	cp "$packages_top/crates/streams/psp-reserve/tests/use.c" "$root/tmp/"
	topology
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

# with_systemd: a systemctl that writes down what it is told stands in for systemd, and services may start.
with_systemd() {
	mkdir -p "$root/run/systemd/system"
	[ ! -e "$root/usr/bin/systemctl" ] || mv "$root/usr/bin/systemctl" "$packages_work/"
	printf '#!/bin/sh\necho "$*" >>/run/systemd/said\n' >"$root/usr/bin/systemctl"
	chmod 755 "$root/usr/bin/systemctl"
	printf '#!/bin/sh\nexit 0\n' >"$root/usr/sbin/policy-rc.d"
}

without_systemd() {
	rm -f "$root/usr/bin/systemctl" "$root/run/systemd/said"
	[ ! -e "$packages_work/systemctl" ] || mv "$packages_work/systemctl" "$root/usr/bin/"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	rmdir "$root/run/systemd/system" "$root/run/systemd" 2>/dev/null || :
}

# told WORDS...: systemctl was told each of these, and the units after them.
told() {
	cat "$root/run/systemd/said" || return 1
	for words in "$@"; do
		grep -q -e "$words" "$root/run/systemd/said" || {
			echo "expected: systemctl $words"
			return 1
		}
	done
}

# What is there when an update comes: a profile that somebody changed, files of the administrator, a unit and an
# instance that are enabled, what was written about this boot, a program that runs.
administrator='etc/pspacer/eth0.toml etc/default/pspacer-manager'
enabled="etc/systemd/system/multi-user.target.wants/pspacer-manager.service
etc/systemd/system/network-online.target.wants/pspacer@eth0.service"
change_configuration() {
	echo '# changed here' >>"$root/etc/apparmor.d/pspacer"
	mkdir -p "$root/run/pspacer"
	for file in $administrator run/pspacer/eth0.json; do
		mkdir -p "$(dirname "$root/$file")"
		echo "# written here, $file" >"$root/$file"
	done
	for file in $enabled; do
		mkdir -p "$(dirname "$root/$file")"
		ln -s "/usr/lib/systemd/system/$(basename "$file" | sed 's/@.*\./@./')" "$root/$file"
	done
	with_systemd
	topology
	inside sh -c 'echo $$ >/tmp/manager
		exec pspacer manager --topology /tmp/net.toml --store memory: --listen 127.0.0.1:0 --address-file /tmp/address' \
		>"$root/tmp/manager.said" 2>&1 &
	for _ in $(seq 100); do
		[ ! -s "$root/tmp/address" ] || return 0
		sleep 0.1
	done
	cat "$root/tmp/manager.said"
	return 1
}

# written FILE...: they are as change_configuration wrote them.
written() {
	for file in "$@"; do
		grep -qx "# written here, $file" "$root/$file" || {
			echo "/$file is not as it was"
			return 1
		}
	done
}

# kept: an update changes nothing of that, and neither stops nor starts a unit.
kept() {
	# shellcheck disable=SC2086 # a list
	written $administrator run/pspacer/eth0.json || return 1
	grep -qx '# changed here' "$root/etc/apparmor.d/pspacer" || return 1
	for file in $enabled; do [ -L "$root/$file" ] || return 1; done
	kill -0 "$(cat "$root/tmp/manager")" || return 1
	! grep -s -e start -e stop -e kill -e disable "$root/run/systemd/said"
}

# end_change: ends the program, and removes what stood in for the rest of a system.
end_change() {
	kill "$(cat "$root/tmp/manager")" 2>/dev/null || :
	for file in manager manager.said address net.toml; do rm -f "$root/tmp/$file"; done
	without_systemd
}

# administrator_leaves: after the packages, files of the administrator are there. They go by hand, and so do units
# that are enabled where a systemctl stood in.
administrator_leaves() {
	# shellcheck disable=SC2086 # a list
	written $administrator || return 1
	for file in $administrator $enabled; do
		rm -f "$root/$file"
		[ ! -d "$(dirname "$root/$file")" ] || (cd "$root" && rmdir -p --ignore-fail-on-non-empty "$(dirname "$file")")
	done
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
