#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Below mq each psp has its share of the line.
#
#   pktgen --> c1a ==== 1 Gbit/s, 4 queues ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

cable c1 1000000000 sink=1 queues=4

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

# --- psp as root: one queue, the whole line ------------------------------------

tc qdisc replace dev c1a root handle 2: psp default 1
proved c1a
check "psp as root has the whole line" same 1Gbit \
	"$(stat_of c1a line_in_force)"
check "psp as root sends on one queue" same 1 "$(stat_of c1a queues)"
check "psp as root is in mode hybrid" same hybrid "$(stat_of c1a mode_in_force)"

# --- below mq -----------------------------------------------------------------

tc qdisc replace dev c1a root handle 1: mq
for queue in 1 2 3 4; do
	check "psp on queue $queue is added" add_psp $queue
	check "psp on queue $queue has a quarter of the line" same 250Mbit \
		"$(queue_stat $queue line_in_force)"
	check "psp on queue $queue has a class" add_class $queue rate 100mbit
done
check "4 queues share the line" same 4 "$(queue_stat 1 queues)"
check "a shared line is in mode timer" same timer "$(queue_stat 1 mode_in_force)"
check "the reason is the shared line" same line_shared "$(queue_stat 1 why_not_hybrid)"
for mode in gap hybrid; do
	refuse "mode $mode on one of 4 queues" \
		"mode $mode on c1a: expected one transmit queue, not 4" \
		tc qdisc change dev c1a parent 1:1 handle 11: psp mode $mode
done
refuse "a class above the share" "expected at most the line's 250000000bit" \
	tc class change dev c1a parent 11: classid 11:1 psp rate 251mbit
refuse "a larger share than others leave" \
	'line 300000000bit: expected 250000000bit, left by others' \
	tc qdisc change dev c1a parent 1:1 handle 11: psp line 300mbit
check "a queue takes a smaller share" \
	tc qdisc change dev c1a parent 1:1 handle 11: psp line 100mbit
check "another queue takes what the first one left" \
	tc qdisc change dev c1a parent 1:2 handle 12: psp line 400mbit
check "the larger share is in force" same 400Mbit "$(queue_stat 2 line_in_force)"
refuse "a share beyond what others leave is refused" \
	'line 250000000bit: expected 100000000bit, left by others' \
	tc qdisc change dev c1a parent 1:1 handle 11: psp line auto
check "a psp replaces another psp on a queue" \
	tc qdisc replace dev c1a parent 1:3 handle 23: psp
check "the replacing psp has an even share" same 250Mbit "$(queue_stat 3 line_in_force)"
tc qdisc del dev c1a parent 1:3
check "a psp replaces the kernel's qdisc again" add_psp 3
check "the psp that came last has a class" add_class 3 rate 100mbit
check "an option other than the line can change" \
	tc qdisc change dev c1a parent 1:2 handle 12: psp order clock

echo "rate_bps=200000000" >$WIRE/c1/fault
check "a slower line: even shares follow" same 50Mbit \
	"$(queue_stat 3 line_in_force)"
check "a slower line: a share given by hand is at most the even one" same 50Mbit \
	"$(queue_stat 2 line_in_force)"
check "a slower line: classes get the share's rate" same 50Mbit \
	"$(tc -s class show dev c1a parent 13: | tr ' ' '\n' |
	   grep -A 1 -x rate_in_force | tail -n 1)"
echo "rate_bps=1000000000" >$WIRE/c1/fault
check "a faster line: the share given by hand returns" same 400Mbit \
	"$(queue_stat 2 line_in_force)"
check "a faster line: even shares return" same 250Mbit "$(queue_stat 3 line_in_force)"

# A hash of the flow chooses the transmit queue.
flow c1a "count 400" "delay 0" "udp_dst_min 1" "udp_dst_max 999" \
	"flag UDPDST_RND"
flow_done
sent=0
for queue in 1 2 3 4; do
	check "queue $queue sends" at_least 1 "$(queue_stat $queue sent_frames)"
	sent=$((sent + $(queue_stat $queue sent_frames)))
done
check "all queues together send every frame" same 400 "$sent"
check "the wire saw every frame" same 400 "$(counter c1 a data_frames)"

# --- fewer queues in use, and all of them again ---------------------------------

# The kernel tells only mq about the change; psp sees it when a frame leaves.
queues() {
	echo "queues=$1" >$WIRE/c1/fault
	flow c1a "count 400"
	flow_done
	sleep 0.01
}
queues 2
check "2 queues in use share the line" same 2 "$(queue_stat 1 queues)"
check "a queue takes what the other one in use leaves" \
	tc qdisc change dev c1a parent 1:1 handle 11: psp line 600mbit
check "the share of two queues is in force" same 600Mbit "$(queue_stat 1 line_in_force)"
check "the queue returns to an even share" \
	tc qdisc change dev c1a parent 1:1 handle 11: psp line auto
check "the even share of two queues is a half" same 500Mbit \
	"$(queue_stat 1 line_in_force)"
queues 4
check "4 queues in use have quarters again" same 250Mbit \
	"$(queue_stat 1 line_in_force)"
check "queues in use again have quarters" same 250Mbit \
	"$(queue_stat 3 line_in_force)"
refuse "more queues than the device has are refused" "" \
	sh -c "echo queues=5 >$WIRE/c1/fault"
tc qdisc del dev c1a root
cut_cable c1

# --- psp as the kernel's default qdisc --------------------------------------------

# The first namespace alone has the setting, which is for all.
in_first() { nsenter -t 1 -n "$@"; }

DEFAULT=/proc/sys/net/core/default_qdisc
default_before=$(in_first cat $DEFAULT)
check "psp can be the default qdisc" in_first sh -c "echo psp >$DEFAULT"

# by_default DEV PARENT KEY: prints a statistic of the psp that the kernel made.
by_default() {
	tc -s qdisc show dev "$1" parent "$2" | tr ' ' '\n' |
		grep -A 1 -x -e "$3" | tail -n 1
}
# below ROOT PATTERN: checks that root qdisc ROOT has 4 psp, each with a quarter.
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
check "psp below the default mq sends every frame" same 400 "$sent"

check "an mq with a handle replaces the default mq" \
	tc qdisc replace dev c3a root handle 1: mq
below mq 1
refuse "a psp with more than the others leave is refused" \
	'line 300000000bit: expected 250000000bit, left by others' \
	tc qdisc replace dev c3a parent 1:1 handle 11: psp line 300mbit
check "a psp with less than the others leave is accepted" \
	tc qdisc replace dev c3a parent 1:1 handle 11: psp line 100mbit
check "the accepted psp has the configured line" same 100Mbit "$(by_default c3a 1:1 line_in_force)"
check "psp replaces mq" tc qdisc replace dev c3a root handle 2: psp
check "psp in the place of mq has the whole line" same 1Gbit "$(stat_of c3a line_in_force)"
check "mq replaces psp" tc qdisc replace dev c3a root handle 1: mq
below mq 1
check "mqprio makes psp for its queues" tc qdisc replace dev c3a root handle 3: \
	mqprio num_tc 2 map 0 1 queues 2@0 2@2 hw 0
below mqprio 3
check "the default qdisc is restored" \
	in_first sh -c "echo $default_before >$DEFAULT"
tc qdisc del dev c3a root
cut_cable c3

# --- a device that reports no rate ----------------------------------------------

ip link add c1a numtxqueues 2 type veth peer name c1b
ip link set c1a up
ip link set c1b up
tc qdisc replace dev c1a root handle 1: mq
check "a share by hand is accepted on a device without a rate" add_psp 1 line 100mbit
check "the share by hand is in force" same 100Mbit "$(queue_stat 1 line_in_force)"
ip link del c1a

finish
