#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs conformance cases inside the guest: guest.sh CASE-FILE...
# A case file holds lines `case_id ID` and `step STAGE 'COMMAND'`, written by
# crates/lab/vmlab/src/tdc.rs, which reads the output: what a command printed, and
# after it a line `@@ STAGE EXIT-STATUS`.
#
# Each case has a network namespace of its own, with the devices that tdc's
# nsPlugin makes: v0p0 -- v0p1 (veth, up) and dummy1 (down).
# The kernel's log gets a line when a case begins, so a warning can be traced to its case.

case_id() {
	printf '\n@@ case %s\n' "$1"
	echo "tdc: case $1" >/dev/kmsg
}

step() {
	(eval "$2") 2>&1
	printf '\n@@ %s %s\n' "$1" "$?"
}

one_case() {
	# Without IPv6 only the cases send.
	echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
	echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
	ip -batch - <<-'END'
		link set lo up
		link add v0p0 numtxqueues 4 type veth peer name v0p1 numtxqueues 4
		link add dummy1 type dummy
		link set v0p0 up
		link set v0p1 up
	END
	. "$1"
}

if [ "$1" = one ]; then
	one_case "$2"
	exit 0
fi
echo on >/proc/sys/kernel/printk_devkmsg
for case in "$@"; do
	# The shell's path, because busybox would run its own shell, with its own `ip`.
	unshare -n /bin/sh "$0" one "$case"
done
# The kernel removes a namespace later, in a work item of its own.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	references=$(cat /sys/module/sch_psp/refcnt)
	[ "$references" = 0 ] && break
	sleep 0.2
done
printf '\n@@ references %s\n' "$references"
