#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Several transmit queues: below mq each psp has its share of the line.
#
#   pktgen --> c1a ==== 1 Gbit/s, 4 queues ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

cable c1 1000000000 sink=1 queues=4

# child QUEUE KEY: of the psp on that queue
child() {
	tc -s qdisc show dev c1a parent "1:$1" | tr ' ' '\n' |
		grep -A 1 -x -e "$2" | tail -n 1
}
add_psp() {
	queue=$1
	shift
	tc qdisc add dev c1a parent "1:$queue" handle "1$queue:" psp default 1 "$@"
}
add_class() {
	queue=$1
	shift
	tc class add dev c1a parent "1$queue:" classid "1$queue:1" psp "$@"
}

# --- as root: one queue, all of the line --------------------------------------

tc qdisc replace dev c1a root handle 2: psp default 1
check "as root all of the line is psp's" same 1Gbit \
	"$(stat_of c1a line_in_force)"
check "and one queue sends it" same 1 "$(stat_of c1a queues)"
check "in mode hybrid" same hybrid "$(stat_of c1a mode_in_force)"

# --- below mq -----------------------------------------------------------------

tc qdisc replace dev c1a root handle 1: mq
for queue in 1 2 3 4; do
	check "psp on queue $queue" add_psp $queue
	check "has a quarter of the line" same 250Mbit \
		"$(child $queue line_in_force)"
	check "a class of it" add_class $queue rate 100mbit
done
check "4 queues share it" same 4 "$(child 1 queues)"
check "by timer" same timer "$(child 1 mode_in_force)"
check "because of that" same line_shared "$(child 1 why_not_hybrid)"
for mode in gap hybrid; do
	refuse "mode $mode on one of 4 queues" \
		"mode $mode on c1a: expected one transmit queue, not 4" \
		tc qdisc change dev c1a parent 1:1 handle 11: psp mode $mode
done
refuse "a class above the share" "expected at most the line's 250000000bit" \
	tc class change dev c1a parent 11: classid 11:1 psp rate 251mbit
refuse "a larger share than others leave" \
	'line 300000000bit: expected 250000000bit, what other queues leave' \
	tc qdisc change dev c1a parent 1:1 handle 11: psp line 300mbit
check "a smaller one" \
	tc qdisc change dev c1a parent 1:1 handle 11: psp line 100mbit
check "leaves room for another" \
	tc qdisc change dev c1a parent 1:2 handle 12: psp line 400mbit
check "which is in force" same 400Mbit "$(child 2 line_in_force)"
refuse "no more than that" \
	'line 250000000bit: expected 100000000bit, what other queues leave' \
	tc qdisc change dev c1a parent 1:1 handle 11: psp line auto
check "a psp can take another's place" \
	tc qdisc replace dev c1a parent 1:3 handle 23: psp
check "with its share" same 250Mbit "$(child 3 line_in_force)"
tc qdisc del dev c1a parent 1:3
check "and be replaced itself" add_psp 3
check "with a class" add_class 3 rate 100mbit
check "an option that is not about the line can change all the same" \
	tc qdisc change dev c1a parent 1:2 handle 12: psp order clock

echo "rate_bps=200000000" >$WIRE/c1/fault
check "a slower line: even shares are followed" same 50Mbit \
	"$(child 3 line_in_force)"
check "a share given by hand is no larger then" same 50Mbit \
	"$(child 2 line_in_force)"
check "the classes get what there is" same 50Mbit \
	"$(tc -s class show dev c1a parent 13: | tr ' ' '\n' |
	   grep -A 1 -x rate_in_force | tail -n 1)"
echo "rate_bps=1000000000" >$WIRE/c1/fault
check "a faster line: shares are back" same 400Mbit \
	"$(child 2 line_in_force)"
check "the even ones, too" same 250Mbit "$(child 3 line_in_force)"

# A hash of the flow chooses the queue.
flow c1a "count 400" "delay 0" "udp_dst_min 1" "udp_dst_max 999" \
	"flag UDPDST_RND"
flow_done
sent=0
for queue in 1 2 3 4; do
	check "queue $queue sends" at_least 1 "$(child $queue sent_frames)"
	sent=$((sent + $(child $queue sent_frames)))
done
check "together everything" same 400 "$sent"
check "which the wire has seen" same 400 "$(counter c1 a data_frames)"

# --- fewer queues, and all of them again ---------------------------------------

# The kernel tells mq alone; psp sees it when a frame leaves.
queues() {
	echo "queues=$1" >$WIRE/c1/fault
	flow c1a "count 400"
	flow_done
	sleep 0.01
}
queues 2
check "2 queues in use share it" same 2 "$(child 1 queues)"
check "a share by hand can be what the other leaves" \
	tc qdisc change dev c1a parent 1:1 handle 11: psp line 600mbit
check "which is in force" same 600Mbit "$(child 1 line_in_force)"
check "an even share again" \
	tc qdisc change dev c1a parent 1:1 handle 11: psp line auto
check "is a half: queues out of use take nothing" same 500Mbit \
	"$(child 1 line_in_force)"
queues 4
check "4 queues in use: quarters again" same 250Mbit \
	"$(child 1 line_in_force)"
check "of those that have been out of use, too" same 250Mbit \
	"$(child 3 line_in_force)"
refuse "more queues than there are" "" \
	sh -c "echo queues=5 >$WIRE/c1/fault"
tc qdisc del dev c1a root
cut_cable c1

# --- as the kernel's default qdisc ------------------------------------------------

DEFAULT=/proc/sys/net/core/default_qdisc
default_before=$(cat $DEFAULT)
check "psp can be the default qdisc" sh -c "echo psp >$DEFAULT"

# by_default DEV PARENT KEY: of the psp that the kernel made below the root mq
by_default() {
	tc -s qdisc show dev "$1" parent "$2" | tr ' ' '\n' |
		grep -A 1 -x -e "$3" | tail -n 1
}
# below ROOT PATTERN: root qdisc ROOT has 4 psp, each with a quarter of the line.
below() {
	check "$1: the root is there" \
		sh -c "'$TC' qdisc show dev c3a root | grep -q 'qdisc $1 '"
	for queue in 1 2 3 4; do
		check "$1, queue $queue: psp has a quarter of the line" same 250Mbit \
			"$(by_default c3a "$2:$queue" line_in_force)"
	done
}

cable c2 1000000000 sink=1
check "one queue: psp is root" same 1Gbit "$(stat_of c2a line_in_force)"
cut_cable c2

cable c3 1000000000 sink=1 queues=4
below mq ""
flow c3a "count 400" "delay 0" "udp_dst_min 1" "udp_dst_max 999" \
	"flag UDPDST_RND"
flow_done
sent=0
for queue in 1 2 3 4; do
	sent=$((sent + $(by_default c3a ":$queue" sent_frames)))
done
check "all is sent by them" same 400 "$sent"

check "an mq with a handle replaces it" \
	tc qdisc replace dev c3a root handle 1: mq
below mq 1
refuse "one with more than others leave cannot take the place of one" \
	'line 300000000bit: expected 250000000bit, what other queues leave' \
	tc qdisc replace dev c3a parent 1:1 handle 11: psp line 300mbit
check "one with less can" \
	tc qdisc replace dev c3a parent 1:1 handle 11: psp line 100mbit
check "with the line it is given" same 100Mbit "$(by_default c3a 1:1 line_in_force)"
check "psp takes mq's place" tc qdisc replace dev c3a root handle 2: psp
check "with all of the line" same 1Gbit "$(stat_of c3a line_in_force)"
check "and mq that of psp" tc qdisc replace dev c3a root handle 1: mq
below mq 1
check "mqprio makes them, too" tc qdisc replace dev c3a root handle 3: \
	mqprio num_tc 2 map 0 1 queues 2@0 2@2 hw 0
below mqprio 3
check "the default goes back to what it was" \
	sh -c "echo $default_before >$DEFAULT"
tc qdisc del dev c3a root
cut_cable c3

# --- a device that names no rate ------------------------------------------------

ip link add c1a numtxqueues 2 type veth peer name c1b
ip link set c1a up
ip link set c1b up
tc qdisc replace dev c1a root handle 1: mq
check "no rate: a share by hand" add_psp 1 line 100mbit
check "is taken as it is" same 100Mbit "$(child 1 line_in_force)"
ip link del c1a

finish
