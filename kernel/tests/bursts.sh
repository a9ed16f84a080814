#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# GSO packets (bursts), cut and whole, are charged to the byte.
#
#   one: c2a ==== cable ==== c2b :two       TCP, 64 KB at a time
#
# The test compares the cable's counters with those of psp.

. "$(dirname "$0")/lib.sh"

for name in one two; do
	ip netns add $name
	ip netns exec $name sh -c \
		'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
done

# lay RATE_BPS: makes a new cable.
lay() {
	cable c2 "$1"
	two_hosts c2 10.2.0
}

# send CLASS-TYPE OPTION...: sends 2 MB of TCP through a class of a new psp.
send() {
	class=$1
	shift
	tc -n one qdisc del dev c2a root 2>/dev/null || :
	echo 1 >$WIRE/c2/reset
	tc -n one qdisc add dev c2a root handle 1: psp default 1 "$@"
	# shellcheck disable=SC2086
	tc -n one class add dev c2a parent 1: classid 1:1 psp $class
	proved c2a one
	ip netns exec two iperf3 -s -1 >/dev/null &
	sleep 0.3
	ip netns exec one iperf3 -c 10.2.0.2 -n 2M >/dev/null
	wait
	sleep 0.1
}

stat() {
	tc -n one -s qdisc show dev c2a root | tr ' ' '\n' |
		grep -A 1 -x -e "$1" | tail -n 1
}

# exact NAME: checks that the wire carried what psp charged for, frame by frame.
exact() {
	check "$1: as many frames as the wire saw" \
		same "$(counter c2 a data_frames)" "$(stat sent_frames)"
	check "$1: as many bytes as the wire saw" same "$(counter c2 a wire_bytes)" \
		"$(($(stat sent_wire_bytes) + $(stat gap_wire_bytes)))"
	check "$1: no frame was dropped" same "0 0" \
		"$(stat drop_segment) $(stat drop_long)"
}

# cut NAME, sent_whole NAME: check that the bursts were cut, or sent whole.
cut() {
	check "$1: bursts are cut" at_least 1 "$(stat bursts_cut)"
	check "$1: no burst is whole" same 0 "$(stat bursts_whole)"
	exact "$1"
}
sent_whole() {
	check "$1: bursts are whole" at_least 1 "$(stat bursts_whole)"
	check "$1: no burst is cut" same 0 "$(stat bursts_cut)"
	exact "$1"
}

lay 1000000000
send "rate 100mbit"
cut "auto, paced"
send "mode normal"
cut "auto, normal, 1 Gbit/s"
send "rate 100mbit" mode gap split-gso off
sent_whole "off, paced, gaps"
if whole "off, paced, timer; off, paced, hybrid, layer ip"; then
	send "rate 100mbit" mode timer split-gso off
	sent_whole "off, paced, timer"
	send "rate 100mbit" split-gso off layer ip
	sent_whole "off, paced, hybrid, layer ip"
fi
send "mode normal" split-gso off guard on
sent_whole "off, normal, guard"
if whole "on, normal; off, normal, a deadline"; then
	send "mode normal" split-gso on
	cut "on, normal"
	send "mode normal deadline 1s" split-gso off
	sent_whole "off, normal, a deadline"
fi
send "rate 100mbit" split-gso off
check "split-gso is switched on" \
	tc -n one qdisc change dev c2a root handle 1: psp split-gso on
send "rate 2mbit" split-gso off mode timer line 400mbit
check "a slow class sends whole bursts" \
	at_least 1 "$(stat bursts_whole)"
cut_cable c2

# At 100 Gbit/s a burst takes less than 10 us, so split-gso auto sends it whole.
lay 100000000000
if whole "auto, paced, 100 Gbit/s"; then
	send "rate 1gbit"
	cut "auto, paced, 100 Gbit/s"
fi
send "mode normal"
sent_whole "auto, normal, 100 Gbit/s"
send "mode normal" guard on
cut "auto, normal, 100 Gbit/s, guard"
cut_cable c2

ip netns del one
ip netns del two
finish
