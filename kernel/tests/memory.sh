#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The memory that the root of a namespace makes psp allocate is charged to its control
# group, and bounded.

. "$(dirname "$0")/lib.sh"

CGROUP=/tmp/cgroup
mkdir -p $CGROUP
mount -t cgroup2 none $CGROUP
echo +memory >$CGROUP/cgroup.subtree_control
mkdir $CGROUP/charged
ip link add d1 type dummy
tc qdisc add dev d1 root handle 1: psp

# charged COMMAND...: runs it in the control group, and prints the kB charged since then.
charged() {
	before=$(cat $CGROUP/charged/memory.current)
	sh -c "echo \$\$ >$CGROUP/charged/cgroup.procs && exec \"\$@\"" sh "$@" >&2
	echo $((($(cat $CGROUP/charged/memory.current) - before) / 1024))
}
# classes FIRST LAST OPTION...: adds the classes 1:FIRST to 1:LAST.
classes() {
	i=$1
	last=$2
	shift 2
	while [ "$i" -le "$last" ]; do
		printf 'class add dev d1 parent 1: classid 1:%x psp %s\n' "$i" "$*"
		i=$((i + 1))
	done >/tmp/classes
	"$TC" -batch /tmp/classes
}

# A flow has a bucket of 16 bytes, and some 100 in the scheduler's storage.
check "the tables of 65536 flows are charged" at_least 6000 \
	"$(charged "$TC" class add dev d1 parent 1: classid 1:1 psp mode dynamic flows 65536)"
check "classes of the default flows have room" classes 2 12 mode dynamic
refuse "classes and flows have a limit" "classes and flows: expected at most 262144" \
	classes 13 16 mode dynamic
tc qdisc del dev d1 root

tc qdisc add dev d1 root handle 1: psp
classes 1 2000 mode normal
tc class del dev d1 classid 1:1
sed -i 's/mode normal/rate 1mbit/; s/class add/class change/' /tmp/classes
sed -i 1d /tmp/classes
check "the histograms of lateness are charged" at_least 300 "$(charged "$TC" -batch /tmp/classes)"
tc qdisc del dev d1 root
tc qdisc add dev d1 root handle 1: psp
sed -i 's/class change/class add/' /tmp/classes
check "classes are charged" at_least 2000 "$(charged "$TC" -batch /tmp/classes)"
tc qdisc del dev d1 root

ip link del d1
rmdir $CGROUP/charged
umount $CGROUP
finish
