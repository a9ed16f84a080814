#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Deadlines, ceil, and the statistics of a class.
#
#   pktgen --> c1a ==== 1 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

cable c1 1000000000 sink=1

class_late() { class_stat_of c1a 1:1 drop_late; }
class_sent() { class_stat_of c1a 1:1 sent_frames; }

# --- deadlines -------------------------------------------------------------

fresh_pair rate 1mbit deadline 20ms
burst 50
check "late frames are dropped" at_least 45 "$(class_late)"
check "frames in time are sent" at_least 1 "$(class_sent)"
check "every frame is sent or dropped late, not both" \
	same 50 "$(($(class_late) + $(class_sent)))"
check "the qdisc counts the same late frames" same "$(class_late)" \
	"$(stat_of c1a drop_late)"
check "the queue is empty, not below" empty c1a
check "the deadline is raised to an hour" \
	tc class change dev c1a parent 1: classid 1:1 psp deadline 3600s
before=$(class_late)
burst 20
check "no frame is later than an hour" same "$before" "$(class_late)"

# 300 frames at once are more than one call of dequeue drops.
fresh_pair rate 1mbit deadline 5ms
flow c1a "count 300" "delay 0"
flow_done
check "300 late frames are dropped before the next one comes" drained c1a
burst 1
check "the frame after 300 late ones is sent" at_least 2 "$(class_sent)"

# A dropped frame moves no clock, so the class keeps its rate.
fresh_pair rate 100mbit deadline 2ms
burst 400
check "a class that drops late frames keeps its rate" at_least 15 "$(class_sent)"
check "a class that drops late frames does not exceed its rate" at_most 40 "$(class_sent)"

fresh_pair rate 200kbit
flow c1a "count 5" "delay 0"
sleep 0.1
check "frames wait in the class" at_least 2 "$(backlog_of c1a)"
check "a class with waiting frames gets a deadline" \
	tc class change dev c1a parent 1: classid 1:1 psp deadline 1us
flow_done
drained c1a
check "frames that came before the deadline was set are not late" same 0 "$(class_late)"
check "frames that came before the deadline was set are sent" same 5 "$(class_sent)"

fresh_pair rate 10mbit deadline 10ms
tc qdisc add dev c1a parent 1:1 handle 11: netem delay 50ms limit 1000
burst 10
check "waiting in a class's queue counts" same 10 "$(class_late)"
tc qdisc replace dev c1a parent 1:1 handle 13: fq
burst 5
check "fq below a deadline sends" same 5 "$(class_sent)"
tc qdisc replace dev c1a parent 1:1 handle 12: codel
burst 5
check "codel below a deadline sends" same 10 "$(class_sent)"

fresh_pair rate 10mbit
check "a normal class with a deadline" \
	tc class change dev c1a parent 1: classid 1:3 psp deadline 100us
burst 200 "udp_dst_min 10" "udp_dst_max 10"
check "a normal class drops frames that come too fast for the wire" \
	at_least 1 "$(class_stat_of c1a 1:3 drop_late)"
check "every frame is sent or dropped late" same 200 \
	$(($(class_stat_of c1a 1:3 drop_late) + \
	   $(class_stat_of c1a 1:3 sent_frames)))

# --- ceil ------------------------------------------------------------------

fresh_pair rate 10mbit ceil 100mbit
burst 200
check "a class above its rate and below its ceil borrows" \
	at_least 150 "$(class_stat_of c1a 1:1 borrowed_frames)"
check "the ceil is removed" \
	tc class change dev c1a parent 1: classid 1:1 psp ceil 0
before=$(class_stat_of c1a 1:1 borrowed_frames)
burst 50
check "a class without a ceil does not borrow" same "$before" \
	"$(class_stat_of c1a 1:1 borrowed_frames)"

# --- statistics of a class ----------------------------------------------------

fresh_pair rate 10mbit
# Frames come a little faster than the class sends.
flow c1a "count 950" "delay 1100000"
flow_done
drained c1a
check "the class waited for its clock" at_least 500 \
	"$(class_stat_of c1a 1:1 throttled)"
check "the class counts its bytes on the wire" same $((950 * 1424)) \
	"$(class_stat_of c1a 1:1 sent_wire_bytes)"
fresh_pair rate 10mbit
tc qdisc add dev c1a parent 1:1 handle 11: pfifo limit 5
burst 50
# pktgen tries again until the queue has taken so many.
check "a queue that overflows: what it takes is sent" same 50 "$(class_sent)"
check "a queue that overflows: the class counts its drops" \
	at_least 1 "$(class_stat_of c1a 1:1 drop_child)"
check "a queue that overflows: tc's sum of drops is the same" same "$(class_stat_of c1a 1:1 drop_child)" \
	"$(tc -s class show dev c1a classid 1:1 |
	   sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')"

cut_cable c1
finish
