#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Thousands of changes under traffic, and every way to remove a port. Afterwards no
# packet, class, qdisc or module reference is left.
#
#   pktgen, as fast as it can --> c1a ==== 1 Gbit/s ==== c1b (sink)
#
# ROUNDS: number of changes of each type; default 1000, in a part 150.

. "$(dirname "$0")/lib.sh"

ROUNDS=${ROUNDS:-$(choose 150 1000)}
NAMESPACES=$(choose 3 10)
echo "# $ROUNDS changes, $NAMESPACES namespaces"
MODULE=/sys/module/sch_psp

references() { cat $MODULE/refcnt; }

port() {
	tc qdisc add dev "$1" root handle 1: psp default 1
	tc class add dev "$1" parent 1: classid 1:1 psp rate 400mbit
	tc class add dev "$1" parent 1: classid 1:2 psp mode normal
}

# batch FILE: runs many changes in one process.
batch() { tc -batch "$1"; }

cable c1 1000000000 sink=1
baseline=$(references)
port c1a
flow c1a "skb_priority 65537"

# --- classes come, change and go -----------------------------------------

i=0
while [ $i -lt "$ROUNDS" ]; do
	id=$(printf '1:%x' $((16 + i % 64)))
	echo "class add dev c1a parent 1: classid $id psp rate $((i + 1))kbit"
	echo "class change dev c1a parent 1: classid $id psp rate $((i + 1))mbit"
	echo "class change dev c1a parent 1: classid $id psp mode normal"
	echo "class del dev c1a classid $id"
	i=$((i + 1))
done >/tmp/one-by-one
check "$ROUNDS classes come, change twice and go" batch /tmp/one-by-one
slab_before=$(slab_kb)
check "$ROUNDS classes come, change twice and go again" batch /tmp/one-by-one
given_back "$ROUNDS classes leave no memory behind" 512 "$slab_before"

i=0
while [ $i -lt "$ROUNDS" ]; do
	id=$(printf '1:%x' $((16 + i)))
	echo "class add dev c1a parent 1: classid $id psp rate 10kbit"
	i=$((i + 1))
done >/tmp/many
check "$ROUNDS classes at once" batch /tmp/many
check "$ROUNDS classes are shown" same $((ROUNDS + 2)) \
	"$(tc class show dev c1a | grep -c 'class psp')"

# --- the class that sends changes ----------------------------------------

i=0
while [ $i -lt "$ROUNDS" ]; do
	echo "class change dev c1a parent 1: classid 1:1 psp rate $((100 + i % 900))mbit"
	[ $((i % 10)) = 0 ] &&
		echo "class change dev c1a parent 1: classid 1:1 psp mode normal"
	[ $((i % 10)) = 5 ] &&
		echo "qdisc change dev c1a root handle 1: psp mode timer"
	[ $((i % 10)) = 7 ] &&
		echo "qdisc change dev c1a root handle 1: psp mode gap order rate"
	[ $((i % 10)) = 9 ] &&
		echo "qdisc change dev c1a root handle 1: psp order clock layer wire"
	i=$((i + 1))
done >/tmp/busy
check "$ROUNDS changes of the class that sends" batch /tmp/busy

# --- the class is deleted and made again, with its queue and its filters --

i=0
while [ $i -lt "$ROUNDS" ]; do
	echo "qdisc add dev c1a parent 1:1 handle 11: pfifo limit $((i % 50 + 1))"
	echo "filter add dev c1a parent 1: protocol ip pref 1 u32 match ip dport 9 0xffff classid 1:2"
	echo "filter del dev c1a parent 1: pref 1"
	echo "qdisc del dev c1a parent 1:1 handle 11:"
	echo "class del dev c1a classid 1:1"
	echo "class add dev c1a parent 1: classid 1:1 psp rate 400mbit"
	i=$((i + 10))
done >/tmp/regraft
check "queues, filters and the class change under traffic" batch /tmp/regraft

i=0
while [ $i -lt $((ROUNDS / 10)) ]; do
	echo "qdisc del dev c1a root"
	echo "qdisc add dev c1a root handle 1: psp default 1"
	echo "class add dev c1a parent 1: classid 1:1 psp rate 400mbit"
	echo "qdisc replace dev c1a root handle 2: psp mode timer"
	echo "qdisc replace dev c1a root handle 1: psp default 1"
	echo "class add dev c1a parent 1: classid 1:1 psp rate 400mbit"
	i=$((i + 1))
done >/tmp/reroot
check "the qdisc changes under traffic" batch /tmp/reroot

i=0
while [ $i -lt 20 ]; do
	ip link set c1a down
	ip link set c1a up
	i=$((i + 1))
done
check "the port down and up under traffic" same 20 "$i"

flow_stop
check "everything is sent" drained c1a
refuse "the used module is not removed" '' rmmod sch_psp
tc qdisc del dev c1a root
check "no reference to the module is left" same "$baseline" "$(references)"

# --- the device is deleted under traffic ---------------------------------

port c1a
flow c1a "skb_priority 65537"
sleep 0.05
cut_cable c1
wait "$flow_pid" || :
echo rem_device_all >$PKTGEN/kpktgend_0
check "a device removed under traffic leaves no reference" \
	same "$baseline" "$(references)"

# --- the device's namespace is deleted under traffic ---------------------

#   (here) out ---- in (NAMESPACE) DEV --> ...
#
# doomed DEV NAMESPACE: deletes the namespace while forwarded frames wait in a slow
# class of DEV. (A process or a socket inside would keep the namespace alive.)
waited=0
doomed() {
	ip link add out type veth peer name in netns "$2" \
		address 02:00:00:00:00:03
	ip link set out up
	ip addr add 10.8.0.1/24 dev out
	ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:03 dev out
	ip route add 10.9.0.0/24 via 10.8.0.2
	ip -n "$2" link set in up
	ip -n "$2" addr add 10.8.0.2/24 dev in
	ip -n "$2" link set "$1" up
	ip -n "$2" addr add 10.9.0.1/24 dev "$1"
	ip -n "$2" neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev "$1"
	ip netns exec "$2" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	tc -n "$2" qdisc add dev "$1" root handle 1: psp default 1
	tc -n "$2" class add dev "$1" parent 1: classid 1:1 psp rate 100kbit

	ping -q -s 1400 -i 0.002 10.9.0.2 >/dev/null 2>&1 &
	sender=$!
	sleep 0.2
	if tc -n "$2" -s qdisc show dev "$1" root | grep -q 'backlog [1-9]'
	then
		waited=$((waited + 1))
	fi
	ip netns del "$2"
	sleep 0.1
	kill "$sender" 2>/dev/null || :
	wait "$sender" 2>/dev/null || :
	ip link del out 2>/dev/null || :
}

# The device va, in timer mode, is deleted with its namespace.
i=0
while [ $i -lt "$NAMESPACES" ]; do
	ip netns add "one$i"
	ip link add va netns "one$i" type veth peer name "v$i"
	ip link set "v$i" up
	doomed va "one$i"
	i=$((i + 1))
done
# The device c2a, in gap mode, returns to the first namespace.
cable c2 1000000000 sink=1
ip netns add two
ip link set c2a netns two
doomed c2a two
check "$((NAMESPACES + 1)) namespaces were removed with frames waiting" same $((NAMESPACES + 1)) "$waited"
# The kernel removes a namespace later, in a work item of its own.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ "$(references)" = "$baseline" ] && break
	sleep 0.2
done
check "removed namespaces leave no reference to the module" same "$baseline" "$(references)"
cut_cable c2

check "the unused module is removed" rmmod sch_psp
finish
