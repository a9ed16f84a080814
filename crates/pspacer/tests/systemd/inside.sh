#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs as a service below systemd in the laboratory's guest (boot.sh). Prints TAP.

. /systemd/lib.sh
tc() { chroot /guest /usr/sbin/tc "$@"; }
ip() { chroot /guest /usr/sbin/ip "$@"; }

unit=pspacer@c1a.service
file=/etc/pspacer/c1a.toml

# of UNIT PROPERTY: prints a property.
of() { systemctl show --value -p "$2" "$1"; }
is() { [ "$(of $unit ActiveState)" = "$1" ]; }
# paced RATE: backup has this rate in the kernel.
paced() { tc class show dev c1a 2>&1 | tee /run/classes | grep -q "rate $1"; }
# soon NAME COMMAND...: the command must succeed within 10 s.
soon() {
	what=$1
	shift
	for _ in $(seq 20); do
		"$@" >/dev/null 2>&1 && break
		sleep 0.5
	done
	check "$what" "$@"
}
# before A B: unit A was active before unit B.
before() {
	echo "$1: $(of "$1" ActiveEnterTimestampMonotonic), $2: $(of "$2" ActiveEnterTimestampMonotonic)"
	[ "$(of "$1" ActiveEnterTimestampMonotonic)" -gt 0 ] &&
		[ "$(of "$1" ActiveEnterTimestampMonotonic)" -lt "$(of "$2" ActiveEnterTimestampMonotonic)" ]
}

check "the unit is active once the guest has booted" is active
check "the device was paced before the network was online" before $unit network-online.target
check "the kernel has the file's rate" paced 300Mbit

sed -i 's/300mbit/200mbit/' $file
check "reload takes a changed file" systemctl reload $unit
check "the kernel has the new rate" paced 200Mbit

sed 's/200mbit/200mbits-and-more/' $file >/run/bad && cat /run/bad >$file
refuse "reload of a bad file fails" "." systemctl reload $unit
check "the kernel keeps the rate" paced 200Mbit
check "the unit is still active" is active
sed -i 's/200mbits-and-more/100mbit/' $file

cut_cable c1
soon "the unit ends with its device" is inactive
cable c1 1000000000 sink=1
soon "the unit starts when the device comes back" is active
check "the device that came back has the file's rate" paced 100Mbit

check "stop" systemctl stop $unit
check "after a stop the device is still paced" paced 100Mbit
check "start" systemctl start $unit
check "the rate is as before" paced 100Mbit
output=$(systemctl --failed --no-legend)
check "no unit has failed" [ -z "$output" ]
finish
