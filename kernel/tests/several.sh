#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs tests one after the other in one guest: each in a network namespace of its own, with
# nothing left of the one before. A line `@@ begin NAME` stands before what a test prints, and
# `@@ end NAME STATUS` behind it; a status of 99 says that something was left behind, and what.
#
# usage: several.sh NAME.sh...

folder=$(dirname "$0")
WIRE=/sys/kernel/debug/wire

devices() { ls /sys/class/net; }
programs() { cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0\n' '  ' | wc -w; }
references() { cat /sys/module/sch_psp/refcnt; }

# cut_cables: ends what a test may leave by design: its cables and its namespaces.
cut_cables() {
	for cable in "$WIRE"/*/; do
		[ -d "$cable" ] && echo "name=$(basename "$cable")" >$WIRE/delete
	done
	for name in $(ls /var/run/netns 2>/dev/null); do
		ip netns del "$name"
	done
}

if [ "$1" = one ]; then
	sh "$folder/$2"
	status=$?
	cut_cables
	exit $status
fi

# left: prints what differs from before the first test. The kernel removes a namespace later, in
# a work item of its own.
left() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		now=$(echo "references $(references), devices $(devices | tr '\n' ' '), words of programs $(programs)")
		[ "$now" = "$before" ] && return 0
		sleep 0.2
	done
	echo "before: $before"
	echo "after: $now"
	return 1
}

before=$(echo "references $(references), devices $(devices | tr '\n' ' '), words of programs $(programs)")
all=0
for test in "$@"; do
	echo "@@ begin $test"
	echo "hold_max_ns=0" >$WIRE/noise
	# The shell's path, because busybox would run its own shell, with its own `ip`.
	unshare -n /bin/sh "$0" one "$test" 2>&1
	status=$?
	left || status=99
	[ $status = 0 ] || all=1
	echo "@@ end $test $status"
done
exit $all
