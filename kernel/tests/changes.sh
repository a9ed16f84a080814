#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# What changes, and what does not: a class whose change is refused or whose line became slower,
# the port at an event that changes nothing, the length of a frame with a filter's action.
#
#   one: psp-send -> c1a ==== 1 Gbit/s ==== c1b -> two
#   pktgen -> c2a ==== 1 Gbit/s ==== c2b (sink)
#   c3a ==== 1 Tbit/s, 64 queues ==== c3b (sink)
#   pktgen -> c4a ==== 1 Gbit/s ==== c4b (sink)

. "$(dirname "$0")/lib.sh"

ip netns add one
ip netns add two
cable c1 1000000000 records_max=0
two_hosts c1 10.1.0

# change OPTION...: changes class 1:1 of c1a.
change() { tc -n one class change dev c1a parent 1: classid 1:1 psp "$@"; }

# --- another type of class that is refused ---------------------------------------

tc -n one qdisc add dev c1a root handle 1: psp default 1 mode timer
tc -n one class add dev c1a parent 1: classid 1:1 psp mode dynamic rate 10mbit
tc -n one qdisc add dev c1a parent 1:1 handle 11: pfifo
ip netns exec one psp-send --epoch-ns "$(now_ns)" --stop-ns 200000000 \
	--flow to=10.1.0.2:100,pacing=1000000,rate=100000 >/tmp/sent
check "a socket has a flow" same 1 "$(got flows_known)"
refuse "launch times above a qdisc are refused" "has a qdisc below it" \
	change mode paced txtime tai
check "the refused type leaves the flow" same 1 "$(got flows_known)"
check "the accepted type ends the flow" change mode paced rate 20mbit
check "a paced class has no flow" same "" "$(got flows_known)"
tc -n one qdisc del dev c1a root

# --- a line that becomes slower ---------------------------------------------------

# line RATE_BPS: gives c1 this rate.
line() { echo "rate_bps=$1" >$WIRE/c1/fault; }

tc -n one qdisc add dev c1a root handle 1: psp default 1 mode timer
tc -n one class add dev c1a parent 1: classid 1:1 psp rate 500mbit ceil 800mbit
line 100000000
check "a slower line: the class has the line's rate" same 100000000 "$(got rate_in_force)"
check "a slower line: another option of the class changes" change deadline 10ms
check "a slower line: the rate that the class had is accepted" change rate 500mbit
check "a slower line: a lower rate is accepted" change rate 50mbit
check "a slower line: a lower rate is in force" same 50000000 "$(got rate_in_force)"
refuse "a slower line: a higher rate than before is refused" \
	"rate 600000000bit: expected at most the line's 100000000bit" change rate 600mbit
check "a slower line: another ceil is accepted" change ceil 90mbit
refuse "a slower line: a ceil below the rate is refused" "ceil 40000000bit: expected at least the rate's 50000000bit" \
	change ceil 40mbit
check "a slower line: a class changes back" change rate 50mbit ceil 100mbit
line 1000000000
tc -n one class change dev c1a parent 1: classid 1:1 psp rate 500mbit ceil 800mbit
line 100000000
refuse "a slower line: a ceil that is below the rate on a faster one is refused" \
	"ceil 100000000bit: expected at least the rate's 500000000bit" change ceil 100mbit
line 1000000000
check "a faster line: the rate returns" same 500000000 "$(got rate_in_force)"
tc -n one qdisc del dev c1a root

# From 1 Tbit/s to 15 kbit/s no rate is one that clocks can keep on both lines.
cable c3 1000000000000 sink=1 queues=64
# third KEY: prints a statistic of the class, rates as tc writes them.
third() {
	tc -s class show dev c3a classid 11:1 | tr ' ' '\n' | grep -A 1 -x -e "$1" | tail -n 1
}
tc qdisc replace dev c3a root handle 1: mq
tc qdisc add dev c3a parent 1:1 handle 11: psp line 1tbit split-gso off
tc class add dev c3a parent 11: classid 11:1 psp rate 500gbit
tc class add dev c3a parent 11: classid 11:2 psp mode dynamic
echo "rate_bps=1000000" >$WIRE/c3/fault
check "a much slower line: a class has its share" same 15625bit "$(third rate_in_force)"
echo "rate_bps=1000000000000" >$WIRE/c3/fault
check "a much faster line: a class has its rate" same 500Gbit "$(third rate_in_force)"
cut_cable c3

# --- an event of the device that changes nothing ----------------------------------

# The watch of the wire measures within 200 ms if nothing restarts it.
cable c2 1000000000 sink=1
tc qdisc add dev c2a root handle 1: psp default 1 mode gap
tc class add dev c2a parent 1: classid 1:1 psp rate 900mbit
proved c2a
flow c2a "delay 0"
for state in on off on off on off on off on off on off; do
	ip link set c2a multicast $state
	sleep 0.05
done
check "events that change nothing leave the watch of the wire" \
	between 990000000 1010000000 "$(tc -s -j qdisc show dev c2a root | json_of line_measured_bps)"
flow_stop
cut_cable c2

# --- a filter's action that makes frames longer ------------------------------------

# sent_bytes CLASSID: prints what tc says that a class of c4a has sent.
sent_bytes() { tc -s class show dev c4a classid "$1" | sed -n 's/^ Sent \([0-9]*\) bytes.*/\1/p'; }

# The device inserts the second tag, as it does that of a VLAN device: only the first counts.
cable c4 1000000000 sink=1
tc qdisc add dev c4a root handle 1: psp default 1 mode timer
tc class add dev c4a parent 1: classid 1:1 psp rate 100mbit
tc filter add dev c4a parent 1: protocol ip pref 1 u32 match ip dport 9 0xffff classid 1:1 \
	action vlan push id 5 pipe action vlan push id 6
flow c4a "count 100" "pkt_size 1000"
flow_done
drained c4a
check "the length of a frame is taken after filters' actions" same 100400 "$(sent_bytes 1:1)"
check "the wire agrees" same $((100 * (1008 + 24))) "$(counter c4 a wire_bytes)"
cut_cable c4

ip netns del one
ip netns del two
cut_cable c1
finish
