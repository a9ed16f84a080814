#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Types of gap frames, and the modes of a device with a wire.
#
#   pktgen --> c1a ==== 1 Gbit/s ==== c1b (sink)
#
# The test compares the cable's counters with those of psp.

. "$(dirname "$0")/lib.sh"

cable c1 1000000000 sink=1

# fresh OPTION...: makes a new psp with one class of 100 Mbit/s; counters begin at 0.
fresh() {
	tc qdisc del dev c1a root 2>/dev/null || :
	echo 1 >$WIRE/c1/reset
	tc qdisc add dev c1a root handle 1: psp default 1 "$@"
	tc class add dev c1a parent 1: classid 1:1 psp rate 100mbit
	proved c1a
}

# wire_agrees: checks that the wire carried exactly the bytes that psp counted.
wire_agrees() {
	same "$(($(stat_of c1a sent_wire_bytes) + $(stat_of c1a gap_wire_bytes)))" \
		"$(counter c1 a wire_bytes)"
}

# --- types -----------------------------------------------------------------

for kind in pause multicast; do
	fresh mode gap gap $kind
	burst 100 "skb_priority 65537"
	gaps=$(stat_of c1a gap_frames)
	check "gap $kind: the gaps are filled" at_least 800 "$gaps"
	check "gap $kind: as many gap frames as the wire saw" \
		same "$gaps" "$(counter c1 a gap_frames)"
	check "gap $kind: as many bytes as the wire saw" wire_agrees
	if [ $kind = pause ]; then pauses=$gaps; else pauses=0; fi
	check "gap $kind: $pauses gap frames are PAUSE" \
		same "$pauses" "$(counter c1 a pause_frames)"
	check "gap $kind: the far port lets no gap frame in" \
		same 100 "$(counter c1 a data_frames)"
done

fresh mode gap gap pause
flow c1a "skb_priority 65537"
for kind in multicast pause multicast; do
	check "a change to gap $kind under traffic" \
		tc qdisc change dev c1a root handle 1: psp gap $kind
	sleep 0.005
done
check "a new address under traffic" \
	ip link set c1a address 02:00:00:00:00:77
sleep 0.005
flow_stop
check "every frame is sent after changes of gap frames" drained c1a
check "the wire saw gap frames other than PAUSE" at_least 1 \
	$(($(counter c1 a gap_frames) - $(counter c1 a pause_frames)))

# --- modes -----------------------------------------------------------------

fresh
check "auto is hybrid on a wire" same hybrid "$(stat_of c1a mode_in_force)"
check "auto has no reason against hybrid" same "" \
	"$(stat_of c1a why_not_hybrid)"
burst 100 "skb_priority 65537"
check "hybrid: the timer ran" at_least 50 "$(stat_of c1a waits)"
hybrid=$(stat_of c1a gap_wire_bytes)
check "hybrid: the wire carried what psp counted" wire_agrees
fresh mode gap
burst 100 "skb_priority 65537"
check "gap: the wire carried what psp counted" wire_agrees
check "gap: hybrid took less than half of its gap bytes" \
	at_most $(($(stat_of c1a gap_wire_bytes) / 2)) "$hybrid"
check "a change to timer" tc qdisc change dev c1a root handle 1: psp mode timer
check "mode timer is in force" same timer "$(stat_of c1a mode_in_force)"
check "a chosen mode timer has no reason against hybrid" same "" "$(stat_of c1a why_not_hybrid)"
before=$(stat_of c1a gap_frames)
burst 50 "skb_priority 65537"
check "timer: no gap frames" same "$before" "$(stat_of c1a gap_frames)"
check "a change to hybrid" \
	tc qdisc change dev c1a root handle 1: psp mode hybrid
check "mode hybrid is in force" same hybrid "$(stat_of c1a mode_in_force)"
burst 50 "skb_priority 65537"

# --- the link --------------------------------------------------------------

# in_force KEY: prints a statistic of the class, in bit/s.
in_force() {
	tc -s class show dev c1a | tr ' ' '\n' | grep -A 1 -x -e "$1" | tail -n 1
}
line() { tc -s -j qdisc show dev c1a root | json_of line_in_force_bps; }

modes=$(choose hybrid "gap hybrid")
echo "# the link: modes $modes"
for mode in $modes; do
	fresh mode $mode
	flow c1a "skb_priority 65537"
	sleep 0.02
	echo "rate_bps=50000000" >$WIRE/c1/fault
	check "$mode: a slower line is followed" same 50000000 "$(line)"
	check "$mode: the class gets the slower line's rate" same 50Mbit \
		"$(in_force rate_in_force)"
	check "$mode: the class keeps its configured rate" same 100Mbit \
		"$(in_force rate)"
	sleep 0.02
	echo "rate_bps=1000000000" >$WIRE/c1/fault
	check "$mode: a faster line is followed" same 1000000000 "$(line)"
	check "$mode: the class has its rate again" same 100Mbit \
		"$(in_force rate_in_force)"
	sleep 0.02
	echo "carrier=0" >$WIRE/c1/fault
	sleep 0.02
	check "$mode: without a link the line is remembered" \
		same 1000000000 "$(line)"
	echo "carrier=1" >$WIRE/c1/fault
	sleep 0.2
	# pktgen stops without a carrier.
	flow_stop
	before=$(stat_of c1a sent_frames)
	flow c1a "skb_priority 65537"
	sleep 0.05
	check "$mode: with a link frames go again" at_least $((before + 10)) \
		"$(stat_of c1a sent_frames)"
	echo "end=a busy_every=7" >$WIRE/c1/fault
	sleep 0.02
	echo "end=a busy_every=0" >$WIRE/c1/fault
	flow_stop
	check "$mode: a driver that was busy now and then has sent all" \
		drained c1a
	check "$mode: it was busy" at_least 1 "$(counter c1 a busy_faults)"
done

# --- flow control --------------------------------------------------------------

tc qdisc del dev c1a root
echo "tx_pause=1" >$WIRE/c1/fault
modes=$(choose hybrid "auto gap hybrid")
changed=$(choose auto "auto gap")
echo "# flow control: modes $modes; it changes: modes $changed"
for mode in $modes; do
	fresh mode $mode gap pause
	echo 1 >$WIRE/c1/reset
	burst 20 "skb_priority 65537"
	check "gap pause beside the device's own PAUSE frames sends none ($mode)" \
		same 0 "$(counter c1 a pause_frames)"
	check "other gap frames fill the gaps ($mode)" at_least 1 "$(counter c1 a gap_frames)"
done
for mode in $changed; do
	fresh mode $mode gap pause
	in_force=$(stat_of c1a mode_in_force)
	for pause in 0 1 0; do
		echo "tx_pause=$pause" >$WIRE/c1/fault
		proved c1a
		check "$mode: flow control $pause keeps the mode" same "$in_force" \
			"$(stat_of c1a mode_in_force)"
		echo 1 >$WIRE/c1/reset
		burst 20 "skb_priority 65537"
		if [ $pause = 1 ]; then
			check "$mode: no PAUSE frame was sent" same 0 "$(counter c1 a pause_frames)"
		else
			check "$mode: PAUSE frames fill the gaps" \
				at_least 1 "$(counter c1 a pause_frames)"
		fi
	done
done

# --- VLAN tags ---------------------------------------------------------------

fresh mode gap
ip link add link c1a name c1v type vlan id 5
ip addr add 10.7.0.1/24 dev c1v
ip link set c1v up
ip neigh add 10.7.0.2 lladdr 02:00:00:00:00:02 dev c1v
ping -q -c 20 -i 0.002 -W 1 -s 1400 10.7.0.2 >/dev/null 2>&1 || :
check "tagged frames are sent" at_least 20 "$(stat_of c1a sent_frames)"
check "VLAN tags are counted" wire_agrees

# longest VIA: sends 20 of the largest frames of the IP layer through VIA.
longest() {
	ip addr add 10.8.0.1/24 dev "$1"
	ip link set "$1" up
	ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev "$1"
	ping -q -c 20 -i 0.002 -W 1 -s 1472 10.8.0.2 >/dev/null 2>&1 || :
}

# The driver gets the outer tag beside the frame; the inner tags are in the frame.
fresh mode gap
ip link add link c1v name c1vv type vlan id 6
longest c1vv
check "the longest frames with two tags are sent" \
	at_least 20 "$(stat_of c1a sent_frames)"
check "no frame with two tags is too long" same 0 "$(stat_of c1a drop_long)"
check "two tags are counted" wire_agrees
ip link del c1vv

fresh mode gap
ip link add link c1v name c1vv type vlan proto 802.1ad id 6
ip link set c1vv up
ip link add link c1vv name c1vvv type vlan id 7
longest c1vvv
check "the longest frames with three tags are sent" \
	at_least 20 "$(stat_of c1a sent_frames)"
check "no frame with three tags is too long" same 0 "$(stat_of c1a drop_long)"
check "three tags are counted" wire_agrees
ip link del c1vvv
ip link del c1vv
ip link del c1v

cut_cable c1
finish
