#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Children that caused errors in other classful qdiscs: they send twice, drop what they
# hold, or hold frames and give none.
#
#   pktgen --> c1a ==== 1 Gbit/s ==== c1b (sink)        one class at a time
#   one: c2a ==== 1 Gbit/s ==== c2b :two                TCP, with GSO packets

. "$(dirname "$0")/lib.sh"

FRAMES=200

cable c1 1000000000 sink=1
tc qdisc add dev c1a root handle 1: psp default 1
tc class add dev c1a parent 1: classid 1:1 psp rate 200mbit
tc class add dev c1a parent 1: classid 1:2 psp rate 100mbit
tc class add dev c1a parent 1: classid 1:3 psp mode normal

# sent_after CHILD...: sends FRAMES frames through class 1:1 with that child, and with
# $below below it. $sent is how many left.
below=
sent_after() {
	tc qdisc del dev c1a parent 1:1 2>/dev/null || :
	tc qdisc add dev c1a parent 1:1 handle 11: "$@"
	# shellcheck disable=SC2086
	[ -z "$below" ] || tc qdisc add dev c1a parent 11:1 $below
	before=$(class_stat_of c1a 1:1 sent_frames)
	flow c1a "count $FRAMES" "skb_priority 65537"
	flow_done
	drained c1a
	sent=$(($(class_stat_of c1a 1:1 sent_frames) - before))
}

# all_sent NAME CHILD...: checks that no frame is lost or stays queued.
all_sent() {
	child=$1
	shift
	sent_after "$@"
	check "$child: every frame is sent" same $FRAMES "$sent"
	check "$child: the queue is empty, not below" empty c1a
}

# some_sent NAME CHILD...: the child loses frames; checks that the queue ends empty.
some_sent() {
	child=$1
	shift
	sent_after "$@"
	check "$child: frames are sent" at_least 1 "$sent"
	check "$child: the queue is empty, not below" empty c1a
}

all_sent "pfifo" pfifo limit 1000
# At this rate five frames wait, however slow the guest is.
tc class change dev c1a parent 1: classid 1:1 psp rate 5mbit
some_sent "a pfifo that overflows" pfifo limit 5
check "a pfifo that overflows: drops are counted by cause" \
	at_least 1 "$(stat_of c1a drop_child)"
tc class change dev c1a parent 1: classid 1:1 psp rate 200mbit
all_sent "fq_codel" fq_codel
some_sent "codel that drops while it is asked" \
	codel limit 1000 target 1us interval 10us
some_sent "fq_codel that drops while it is asked" \
	fq_codel limit 20 target 1us interval 10us
all_sent "sfq" sfq
some_sent "a red that drops" red limit 100000 min 2000 max 6000 avpkt 1400 \
	burst 20 probability 1 bandwidth 1000mbit
all_sent "netem that delays" netem delay 3ms limit 1000
check "netem that delays: its silence was noticed" \
	at_least 1 "$(stat_of c1a child_retries)"
all_sent "netem that delays and reorders" \
	netem delay 2ms 1ms reorder 25% 50% limit 1000
some_sent "netem that loses" netem loss 50%
all_sent "tbf slower than the class" tbf rate 50mbit burst 3000 limit 1000000
below="netem delay 1ms limit 1000"
all_sent "tbf that peeks at netem" tbf rate 50mbit burst 3000 limit 1000000
below="codel limit 1000 target 1us interval 10us"
some_sent "tbf that peeks at codel" tbf rate 50mbit burst 3000 limit 1000000
below=
all_sent "prio" prio
all_sent "htb" htb default 0
all_sent "fq" fq

# netem enqueues the copy at the root while the class dequeues the original.
sent_after netem duplicate 100%
check "netem that duplicates: originals and copies are sent" \
	at_least $((FRAMES + 1)) "$sent"
check "netem that duplicates: the queue is empty, not below" empty c1a
sent_after netem duplicate 100% delay 1ms
check "netem that duplicates late: the queue is empty, not below" empty c1a

# --- children are replaced while they hold frames --------------------------

tc qdisc del dev c1a parent 1:1
tc qdisc add dev c1a parent 1:1 handle 11: netem delay 1s limit 1000
# pktgen ends when its last frame has gone.
flow c1a "count $FRAMES" "skb_priority 65537"
sleep 0.1
check "netem holds frames back" same $FRAMES "$(backlog_of c1a)"
tc qdisc replace dev c1a parent 1:1 handle 12: pfifo
check "a new child leaves no frame of the old one" empty c1a
flow_done
all_sent "the class still works" pfifo limit 1000

tc qdisc del dev c1a parent 1:1
tc qdisc add dev c1a parent 1:1 handle 11: netem delay 1s limit 1000
flow c1a "count $FRAMES" "skb_priority 65537"
sleep 0.1
check "netem holds frames back again" same $FRAMES "$(backlog_of c1a)"
check "a class goes while its child holds frames" \
	tc class del dev c1a classid 1:1
check "the deleted class's frames are gone" empty c1a
flow_done
tc class add dev c1a parent 1: classid 1:1 psp rate 200mbit
all_sent "a new class of the same id works" pfifo limit 1000

# --- many children hold frames at once -------------------------------------

children=$(choose 12 40)
i=0
while [ $i -lt "$children" ]; do
	id=$(printf '%x' $((256 + i)))
	echo "class add dev c1a parent 1: classid 1:$id psp rate 1mbit"
	echo "qdisc add dev c1a parent 1:$id netem delay 20ms"
	i=$((i + 1))
done >/tmp/children
tc -batch /tmp/children
before=$(stat_of c1a sent_frames)
flow c1a "count $children" "skb_priority 65792"
flow_done
i=1
while [ $i -lt "$children" ]; do
	flow c1a "count 1" "skb_priority $((65792 + i))"
	flow_done
	i=$((i + 1))
done
check "$children silent children: the queue is empty in the end" drained c1a
check "$children silent children: every frame is sent" at_least $((2 * children - 1)) \
	$(($(stat_of c1a sent_frames) - before))
tc qdisc del dev c1a root

# --- filters choose classes -------------------------------------------------

tc qdisc add dev c1a root handle 1: psp default 1
tc class add dev c1a parent 1: classid 1:1 psp rate 200mbit
tc class add dev c1a parent 1: classid 1:2 psp rate 200mbit
tc filter add dev c1a parent 1: protocol ip pref 1 u32 \
	match ip dport 9 0xffff classid 1:2 action ok
flow c1a "count $FRAMES"
flow_done
drained c1a
check "a filter with action ok: its class sends" \
	same $FRAMES "$(class_stat_of c1a 1:2 sent_frames)"
tc filter del dev c1a parent 1: pref 1
tc filter add dev c1a parent 1: protocol ip pref 1 u32 \
	match ip dport 9 0xffff classid 1:2 action drop
flow c1a "count $FRAMES"
flow_done
check "a filter with action drop: frames are dropped by cause" \
	same $FRAMES "$(stat_of c1a drop_filter)"
tc filter del dev c1a parent 1: pref 1
tc filter add dev c1a parent 1: protocol ip pref 1 u32 \
	match ip dport 9 0xffff classid 1:77
flow c1a "count $FRAMES"
flow_done
drained c1a
check "a filter to no class: the default class sends" \
	same $FRAMES "$(class_stat_of c1a 1:1 sent_frames)"
tc class add dev c1a parent 1: classid 1:77 psp rate 200mbit
flow c1a "count $FRAMES"
flow_done
drained c1a
check "a class younger than its filter: it sends" \
	same $FRAMES "$(class_stat_of c1a 1:77 sent_frames)"
tc filter del dev c1a parent 1: pref 1
tc class del dev c1a classid 1:1
flow c1a "count $FRAMES"
flow_done
check "no class at all: every frame is sent" drained c1a
check "no class at all: frames are counted as unclassified" \
	at_least $FRAMES "$(stat_of c1a unclassified)"
cut_cable c1

# --- bursts of TCP ----------------------------------------------------------

ip netns add one
ip netns add two
cable c2 1000000000
two_hosts c2 10.2.0
tc -n one qdisc add dev c2a root handle 1: psp default 1
tc -n one class add dev c2a parent 1: classid 1:1 psp rate 100mbit
sleep 10 | ip netns exec two nc -l -p 7 >/dev/null &
sleep 0.2
check "TCP through a paced class" ip netns exec one \
	sh -c 'dd if=/dev/zero bs=64k count=32 2>/dev/null | nc 10.2.0.2 7'
wait
tcp_stat() {
	tc -n one -s qdisc show dev c2a root | tr ' ' '\n' |
		grep -A 1 -x -e "$1" | tail -n 1
}
check "TCP: GSO packets are cut to frames" at_least 1385 "$(tcp_stat sent_frames)"
check "TCP: every GSO packet could be cut" same 0 "$(tcp_stat drop_segment)"
check "TCP: no frame was too long" same 0 "$(tcp_stat drop_long)"
ip netns del one
ip netns del two
cut_cable c2
finish
