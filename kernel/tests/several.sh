#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs tests one after the other in one guest: each in a network namespace of its own, with
# nothing left of the one before. A line `@@ begin NAME` stands before what a test prints, and
# `@@ end NAME STATUS` behind it; a status of 99 says that something was left behind, and what.
#
# usage: several.sh NAME.sh...

folder=$(dirname "$0")
WIRE=/sys/kernel/debug/wire

# state: prints what a test must leave as it was: references to the module, devices, programs that
# run and are not of this script.
state() {
	echo "references: $(cat /sys/module/sch_psp/refcnt)"
	echo "devices: $(ls /sys/class/net | tr '\n' ' ')"
	for process in /proc/[0-9]*; do
		tr '\0' ' ' 2>/dev/null <"$process/cmdline" | cut -d ' ' -f 1
	done | grep -v -x -E '|(/bin/)?(sh|cat|cut|grep|ls|sort|tr)' | sort
}

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

# left: fails if the state is not what it was before the first test. The kernel removes a namespace
# later, in a work item of its own.
left() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		now=$(state)
		[ "$now" = "$before" ] && return 0
		sleep 0.2
	done
	printf 'left behind; before:\n%s\nafter:\n%s\n' "$before" "$now"
	return 1
}

before=$(state)
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
