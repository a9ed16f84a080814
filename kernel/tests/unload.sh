#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The module comes and goes: with a qdisc it stays, without one it goes, and its memory
# comes back. At the beginning it is not loaded.

. "$(dirname "$0")/lib.sh"

MODULE=/modules/sch_psp.ko
ip link add d1 type dummy
ip link set d1 up

# round: loads the module, uses it, and unloads it.
round() {
	insmod $MODULE
	tc qdisc add dev d1 root handle 1: psp default 3 line 1gbit
	tc class add dev d1 parent 1: classid 1:1 psp rate 100mbit
	tc class add dev d1 parent 1: classid 1:3 psp mode normal
	tc -s class show dev d1 >/dev/null
	tc qdisc del dev d1 root
	rmmod sch_psp
}

check "the module is not loaded" test ! -d /sys/module/sch_psp
check "it is loaded" insmod $MODULE
check "it has a qdisc" tc qdisc add dev d1 root handle 1: psp default 3
refuse "it does not go while it has one" 'temporarily unavailable\|busy' rmmod sch_psp
check "the qdisc is still there" test -n "$(stat_of d1 default)"
tc qdisc del dev d1 root
check "without one it goes" rmmod sch_psp
check "it comes and goes, to warm up" round
before=$(slab_kb)
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	round
done
given_back "twenty times leave no memory behind" 512 "$before"
check "the module is gone" test ! -d /sys/module/sch_psp
ip link del d1
finish
