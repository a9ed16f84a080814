#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Groups: classes that share a rate and a ceil, and a dynamic class with a total.
#
#   pktgen --> c1a ==== 100 Mbit/s ==== c1b (sink)
#   one: psp-send -> c2a (psp) ==== 100 Mbit/s ==== c2b -> two: psp-recv

. "$(dirname "$0")/lib.sh"

cable c1 100000000 sink=1

add() {
	above=$1
	id=$2
	shift 2
	tc class add dev c1a parent "$above" classid "$id" psp "$@"
}
# port MODE: psp with a filter for each of the ports 11 to 14, to the class of that minor.
port() {
	tc qdisc del dev c1a root 2>/dev/null || :
	tc qdisc add dev c1a root handle 1: psp mode "$1"
	[ "$1" = timer ] || proved c1a
	for minor in 11 12 13 14; do
		tc filter add dev c1a parent 1: protocol ip pref 1 u32 \
			match ip dport $minor 0xffff classid 1:$minor
	done
}
bytes_of() {
	tc -s class show dev c1a classid "$1" | sed -n 's/^ Sent \([0-9]*\) bytes.*/\1/p'
}
# sending COUNT: bytes that each of the classes 1:11 to 1:14, and the group 1:10, send while
# each has frames, in $b11 to $b14 and $b10.
sending() {
	flow c1a "delay 20000" "udp_dst_min 11" "udp_dst_max 15" "flag UDPDST_RND"
	nap 200
	for minor in 10 11 12 13 14; do eval "a$minor=$(bytes_of 1:$minor)"; done
	nap 400
	for minor in 10 11 12 13 14; do
		eval "b$minor=\$(($(bytes_of 1:$minor) - a$minor))"
	done
	flow_stop
}
# ratio PERCENT A B: A is so many percent of B, to 4 % and some frames.
ratio() {
	between $(($1 * $3 / 104 - 9000)) $(($1 * $3 / 96 + 9000)) "$2"
}
# many PERCENT A B, in words.
shares() {
	timely "$1: class 1:11 has $2 % of class 1:14" ratio "$2" "$b11" "$b14"
	timely "$1: class 1:12 has $3 % of class 1:14" ratio "$3" "$b12" "$b14"
	timely "$1: class 1:13 has $4 % of class 1:14" ratio "$4" "$b13" "$b14"
}

modes=$(choose hybrid "timer gap hybrid")
echo "# shares: modes $modes"
for mode in $modes; do
	# What a class leaves goes to its group; the rest of the line to nobody.
	port $mode
	check "$mode: a group" add 1: 1:10 mode group rate 40mbit
	check "$mode: a class of the group" add 1:10 1:11 rate 5mbit ceil 40mbit
	check "$mode: another" add 1:10 1:12 rate 10mbit ceil 40mbit
	check "$mode: a third, without a ceil" add 1:10 1:13 rate 10mbit
	check "$mode: a class beside the group" add 1: 1:14 rate 20mbit
	sending
	shares "$mode, spare of a group" 50 100 50
	timely "$mode: the group counts what its classes send" \
		ratio 200 "$b10" "$b14"
	check "$mode: the group drains" drained c1a
	check "$mode: nothing waits in the group" same 0 "$(class_backlog_of c1a 1:10)"
	check "$mode: the group counts all frames of its classes" same \
		$(($(packets_of 1:11) + $(packets_of 1:12) + $(packets_of 1:13))) \
		"$(packets_of 1:10)"

	# More than the group: in proportion to the rates, up to its ceil.
	port $mode
	add 1: 1:10 mode group rate 20mbit ceil 60mbit
	add 1:10 1:11 rate 20mbit
	add 1:10 1:12 rate 40mbit
	add 1:10 1:13 rate 60mbit
	add 1: 1:14 rate 30mbit
	sending
	shares "$mode, an over-subscribed group at its ceil" 33 67 100
	check "$mode: a group changes while it sends" \
		tc class change dev c1a parent 1: classid 1:10 psp mode group rate 60mbit ceil 60mbit
	check "$mode: class 1:14 has more" \
		tc class change dev c1a parent 1: classid 1:14 psp rate 60mbit
	sending
	# 60 and 60 of the line's 100, less the frames' overhead.
	shares "$mode, an over-subscribed port" 17 33 50

	# Best effort of a group has what paced classes leave of the group's rate.
	port $mode
	add 1: 1:10 mode group rate 30mbit
	add 1:10 1:11 rate 10mbit
	add 1:10 1:12 mode normal
	add 1:10 1:13 mode normal
	add 1: 1:14 rate 20mbit
	sending
	shares "$mode, best effort of a group" 50 50 50
	drained c1a
done

# --- what a group refuses ----------------------------------------------------------

port timer
add 1: 1:10 mode group rate 40mbit ceil 50mbit
add 1:10 1:11 rate 10mbit
check "a group is dumped as it was made" \
	sh -c "$TC class show dev c1a | grep -q 'class psp 1:10 root.* mode group rate 40Mbit ceil 50Mbit'"
check "a class of a group is dumped with its parent" \
	sh -c "$TC class show dev c1a | grep -q 'class psp 1:11 parent 1:10.* rate 10Mbit'"
refuse "a group in a group" 'mode in a group: expected paced or normal' \
	add 1:10 1:20 mode group rate 10mbit
for mode in 'rt reserve 1kb' 'nrt reserve 1kb' dynamic; do
	# shellcheck disable=SC2086
	refuse "mode $mode in a group" 'mode in a group: expected paced or normal' \
		add 1:10 1:20 mode $mode
done
refuse "txtime in a group" 'txtime in a group: expected a class below' \
	add 1:10 1:20 rate 1mbit txtime tai
refuse "a class below a class" 'parent 1:11: expected 1: or a class of mode group' \
	add 1:11 1:20 rate 1mbit
refuse "a class below nothing" 'parent 1:30: expected 1: or a class of mode group' \
	add 1:30 1:20 rate 1mbit
refuse "a class faster than its group" "rate 51000000bit: expected at most a group's 50000000" \
	add 1:10 1:20 rate 51mbit
refuse "a ceil above the group's" "ceil 51000000bit: expected at most a group's 50000000" \
	add 1:10 1:20 rate 1mbit ceil 51mbit
refuse "a group without a rate" 'rate 0bit: expected' add 1: 1:20 mode group
refuse "a group faster than the line" "expected at most the line's" \
	add 1: 1:20 mode group rate 101mbit
refuse "a group with a deadline" 'deadline: expected only with a mode other' \
	add 1: 1:20 mode group rate 10mbit deadline 1ms
refuse "a group slower than a class of it" "ceil 9000000bit: expected class 1:11's or more" \
	tc class change dev c1a parent 1: classid 1:10 psp mode group rate 9mbit ceil 9mbit
refuse "a class moves out of its group" 'parent 1:0: expected 1:10, classes do not move' \
	tc class change dev c1a parent 1: classid 1:11 psp rate 1mbit
refuse "a group becomes a class" 'mode group: expected for a new class' \
	tc class change dev c1a parent 1: classid 1:10 psp mode paced rate 1mbit
refuse "a class becomes a group" 'mode in a group' \
	tc class change dev c1a parent 1:10 classid 1:11 psp mode group rate 1mbit
refuse "a group with classes is deleted" 'class 1:10: it has classes, expected none' \
	tc class del dev c1a classid 1:10
refuse "total of a paced class" 'total: expected only with mode dynamic' \
	add 1: 1:20 rate 1mbit total 2mbit
refuse "total above the line" "total 101000000bit: expected at most the line, 100000000" \
	add 1: 1:20 mode dynamic total 101mbit
refuse "rate above total" 'rate 3000000bit: expected at most the total' \
	add 1: 1:20 mode dynamic rate 3mbit total 2mbit
tc filter del dev c1a parent 1: pref 1
check "a class of a group is deleted" tc class del dev c1a classid 1:11
check "an empty group is deleted" tc class del dev c1a classid 1:10

# --- while frames come: children, deletion, lines, modes, the end ------------------

port hybrid
add 1: 1:10 mode group rate 40mbit ceil 50mbit
add 1:10 1:11 rate 10mbit ceil 50mbit deadline 100ms
add 1:10 1:12 rate 10mbit
add 1:10 1:13 mode normal
check "a qdisc below a class of a group" \
	tc qdisc add dev c1a parent 1:12 handle 12: netem delay 1ms
check "a qdisc below a group, for what comes for the group itself" \
	tc qdisc add dev c1a parent 1:10 handle 10: pfifo limit 10
flow c1a "delay 20000" "udp_dst_min 11" "udp_dst_max 15" "flag UDPDST_RND"
nap 50
for _ in 1 2 3 4 5; do
	for to in timer gap hybrid; do
		tc qdisc change dev c1a root handle 1: psp mode $to
		nap 10
	done
	echo "rate_bps=30000000" >$WIRE/c1/fault
	nap 10
	echo "rate_bps=100000000" >$WIRE/c1/fault
	tc class change dev c1a parent 1:10 classid 1:13 psp rate 3mbit
	tc class change dev c1a parent 1:10 classid 1:13 psp mode normal
	ip link set c1a mtu 9000
	ip link set c1a mtu 1500
	nap 10
done
check "a slower line is that of the group, too" sh -c "
	echo rate_bps=30000000 >$WIRE/c1/fault; sleep 0.1
	$TC -s class show dev c1a classid 1:10 | grep -q 'rate_in_force 30Mbit'"
echo "rate_bps=100000000" >$WIRE/c1/fault
before=$(packets_of 1:10)
nap 100
check "the group sends on" at_least $((before + 10)) "$(packets_of 1:10)"
tc filter del dev c1a parent 1: pref 1
check "classes with frames are deleted" sh -c "
	$TC class del dev c1a classid 1:11 && $TC class del dev c1a classid 1:12"
check "the group is refilled" add 1:10 1:11 rate 5mbit
nap 50
check "psp with groups is deleted while frames come" tc qdisc del dev c1a root
flow_stop

# --- total -------------------------------------------------------------------------

ip netns add one
ip netns add two
cable c2 100000000 records_max=0
two_hosts c2 10.2.0
"$IP" netns exec two psp-recv --port 100 >/dev/null 2>&1 &
receiver=$!
tc -n one qdisc add dev c2a root handle 1: psp default 1
check "a dynamic class with a total" \
	tc -n one class add dev c2a parent 1: classid 1:1 psp mode dynamic ceil 20mbit total 30mbit
check "the total is dumped" \
	sh -c "$TC -n one class show dev c2a | grep -q 'mode dynamic ceil 20Mbit total 30Mbit'"
refuse "a total is taken away" 'total: a class gets it when it is made' \
	tc -n one class change dev c2a parent 1: classid 1:1 psp mode dynamic total 0

bytes() { tc -n one -s class show dev c2a | sed -n 's/^ Sent \([0-9]*\) bytes.*/\1/p'; }
# udp MILLISECONDS FLOWS: the bytes that so many flows of at most 20 Mbit/s send.
udp() {
	flows=
	for _ in $(seq "$2"); do
		flows="$flows --flow to=10.2.0.2:100,pacing=40000000,rate=40000000"
	done
	first=$(bytes)
	# shellcheck disable=SC2086 # one word a flow
	ip netns exec one psp-send --epoch-ns "$(now_ns)" --stop-ns $(($1 * SLOW * 1000000)) \
		$flows >/tmp/sent 2>&1
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		tc -n one -s qdisc show dev c2a root | grep -q 'backlog 0b 0p' && break
		nap 100
	done
	echo $(($(bytes) - first))
}
one_flow=$(udp 500 1)
timely "one flow has its ceil: 20 Mbit/s" between 1000000 2600000 "$one_flow"
four=$(udp 500 4)
tc -n one class change dev c2a parent 1: classid 1:1 psp mode dynamic total 15mbit
check "a total changes" sh -c "$TC -n one class show dev c2a | grep -q 'total 15Mbit'"
echo "# one flow $one_flow bytes, four flows $four"
timely "four flows have the total, and what waited" between 1600000 8600000 "$four"
tc -n one class change dev c2a parent 1: classid 1:1 psp mode dynamic total 60mbit
check "MTU 9000 with flows" ip -n one link set c2a mtu 9000
check "MTU 1500 with flows" ip -n one link set c2a mtu 1500
check "the class is deleted with its flows" tc -n one class del dev c2a classid 1:1
tc -n one qdisc del dev c2a root
kill $receiver

finish
