#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Random operations on five kinds of device; afterwards nothing is left.
#
#   c1a ==== 1 Gbit/s ==== c1b (sink)     a wire: gap frames
#   c2a ==== 1 Gbit/s ==== c2b (sink)     a ring of 4, a queue of 2 frames
#   v1a ---- veth -------- v1b, d1 (dummy)
#   c3a ==== 1 Gbit/s ==== c3b :two       TCP, one connection after the other
#
# SEED, OPERATIONS, SLOW (lib.sh): a slow guest begins fewer connections, for RCU to
# keep up with what they leave.

. "$(dirname "$0")/lib.sh"

SEED=${SEED:-1}
OPERATIONS=${OPERATIONS:-100000}
MODULE=/sys/module/sch_psp

references() { cat $MODULE/refcnt; }

cable c1 1000000000 sink=1
cable c2 1000000000 sink=1 ring=4
ip link add v1a type veth peer name v1b
ip link set v1a up
ip link set v1b up
ip link add d1 type dummy
ip link set d1 up

ip netns add two
cable c3 1000000000 records_max=0
ip addr add 10.3.0.1/24 dev c3a
ip link set c3b netns two
ip -n two addr add 10.3.0.2/24 dev c3b
ip -n two link set c3b up

# Until /tmp/talking goes; what hangs on a link that is down is ended.
listen() {
	while [ -e /tmp/talking ]; do
		timeout 2 ip netns exec two nc -l -p 7 >/dev/null 2>&1 || :
	done
}
talk() {
	while [ -e /tmp/talking ]; do
		dd if=/dev/zero bs=64k count=4 2>/dev/null |
			timeout 1 nc 10.3.0.2 7 >/dev/null 2>&1 || :
		nap 50
	done
}

# fuzz SEED OPERATIONS
fuzz() {
	echo >/tmp/talking
	listen 2>/dev/null &
	talk 2>/dev/null &
	said=0
	psp-fuzz "$@" c1a c2a:bursts d1 v1a:bursts c3a:busy || said=1
	rm /tmp/talking
	wait
	return $said
}

# What the first ones allocate once and for all is not counted.
check "2000 random operations, to warm up" fuzz $((SEED + 1000000)) 2000
slab_before=$(slab_kb)
check "$OPERATIONS random operations, seed $SEED" fuzz "$SEED" "$OPERATIONS"
echo "# $output"
check "TCP came through" at_least 1000 "$(counter c3 b rx_frames)"
given_back "they leave no memory behind" 2048 "$slab_before"
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ "$(references)" = 0 ] && break
	sleep 0.2
done
check "they leave no reference to the module" same 0 "$(references)"
cut_cable c1
cut_cable c2
ip netns del two
cut_cable c3
ip link del v1a
ip link del d1
check "the module can go" rmmod sch_psp
finish
