#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# With guard on, psp sends normal frames only where they fit before a paced one.
#
#   pktgen --> c1a ==== 1 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

cable c1 1000000000 sink=1

# --- guard -----------------------------------------------------------------

both="flag UDPDST_RND"
# late_of: prints how many frames of class 1:1 were late by a byte or more.
late_of() {
	tc -s class show dev c1a classid 1:1 | grep "late_frames " | tr ' ' '\n' |
		grep -v '^0:' | sed -n 's/.*:\([0-9]*\)$/\1/p' |
		{ sum=0; while read -r n; do sum=$((sum + n)); done; echo $sum; }
}

fresh_pair rate 50mbit
burst 800 "udp_dst_min 9" "udp_dst_max 11" "$both"
check "without guard paced frames wait for normal ones" at_least 10 "$(late_of)"
fresh_pair rate 50mbit
check "guard on" tc qdisc change dev c1a root handle 1: psp guard on
burst 800 "udp_dst_min 9" "udp_dst_max 11" "$both"
check "guard holds normal frames back" at_least 5 "$(stat_of c1a guard_band_held)"
check "with guard no paced frame is late" same 0 "$(late_of)"
check "with guard every frame is sent" same 800 "$(stat_of c1a sent_frames)"
check "with guard the queue is empty, not below" empty c1a

# guard dequeues a frame from the class's queue. That frame goes when the class, its
# queue or the link goes.
# holding: lets pktgen fill the normal class behind a line of 500 kbit/s. (No slower
# line, because pktgen burns CPU until its last frame has gone.)
holding() {
	tc qdisc del dev c1a root 2>/dev/null || :
	tc qdisc add dev c1a root handle 1: psp default 3 guard on \
		mode timer line 500kbit
	tc class add dev c1a parent 1: classid 1:3 psp mode normal
	flow c1a "count 20" "delay 0"
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(backlog_of c1a)" -ge 10 ] && break
		sleep 0.02
	done
}
holding
waiting=$(backlog_of c1a)
check "the frame that guard dequeued counts among those that wait" at_least 10 "$waiting"
check "the class's backlog is the qdisc's, or what is left a moment later" \
	at_least $((waiting - 1)) "$(class_backlog_of c1a 1:3)"
check "the class is deleted under guard" tc class del dev c1a classid 1:3
check "no frame of the deleted class stays" empty c1a
flow_done
holding
check "the class's queue is replaced under guard" tc qdisc replace dev c1a parent 1:3 handle 30: pfifo
check "no frame of the replaced queue stays" empty c1a
flow_done
holding
check "guard is switched off" tc qdisc change dev c1a root handle 1: psp guard off
flow_done
check "guard off: the frame that guard dequeued leaves first" drained c1a
check "guard off: every frame is sent" same 20 "$(class_stat_of c1a 1:3 sent_frames)"
holding
check "the class becomes paced under guard" \
	tc class change dev c1a parent 1: classid 1:3 psp rate 450kbit
flow_done
check "the paced class sends every frame" drained c1a
holding
ip link set c1a down
check "a link that goes down leaves no frame" empty c1a
ip link set c1a up
flow_stop
holding
check "the qdisc is deleted under guard" tc qdisc del dev c1a root
flow_done

# Below guard, children give nothing for a while, or drop frames while they are asked.
for child in "netem delay 3ms limit 1000" "tbf rate 50mbit burst 3000 limit 1000000" \
	     "codel limit 1000 target 1us interval 10us" \
	     "netem duplicate 100%" "fq" "sfq"; do
	case $(choose "$child" all) in tbf* | fq | sfq) whole "$child" || continue ;; esac
	fresh_pair rate 50mbit
	tc qdisc change dev c1a root handle 1: psp guard on
	# shellcheck disable=SC2086
	tc qdisc add dev c1a parent 1:3 handle 30: $child
	burst 100 "udp_dst_min 10" "udp_dst_max 10"
	check "guard above $child: frames are sent" at_least 1 \
		"$(class_stat_of c1a 1:3 sent_frames)"
	check "guard above $child: none stays, none below" empty c1a
done

cut_cable c1
finish
