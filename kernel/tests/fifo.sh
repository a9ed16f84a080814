#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The FIFO that a class has until a child is grafted, and children that come
# and go while it holds frames.
#
#   pktgen --> c1a ==== 1 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

LIMIT=40

cable c1 1000000000 sink=1

# port OPTION...: a new psp with class 1:1 of these options, and a queue of LIMIT frames.
port() {
	tc qdisc del dev c1a root 2>/dev/null || :
	ip link set c1a txqueuelen $LIMIT
	tc qdisc add dev c1a root handle 1: psp default 1 mode timer
	tc class add dev c1a parent 1: classid 1:1 psp "$@"
	echo 1 >$WIRE/c1/reset
}

# dropped_of DEV: prints what the qdisc has dropped in all.
dropped_of() {
	tc -s qdisc show dev "$1" root | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p'
}

# purged_of DEV: prints what it has dropped without a cause, of one reading.
purged_of() {
	output=$(tc -s qdisc show dev "$1" root)
	all=$(echo "$output" | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')
	refused=$(echo "$output" | tr ' ' '\n' | grep -A 1 -x drop_child | tail -n 1)
	echo $((all - refused))
}

# filled OPTION...: as port, and pktgen fills the class until its queue is full.
filled() {
	port "$@"
	flow c1a "count 1000" "delay 0" "skb_priority 65537"
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(class_backlog_of c1a 1:1)" -ge $((LIMIT - 1)) ] && break
		sleep 0.02
	done
}

# --- its length, and what is said of it ------------------------------------

filled rate 500kbit
check "it holds as many frames as the device's queue" \
	between $((LIMIT - 1)) $LIMIT "$(class_backlog_of c1a 1:1)"
check "and the qdisc says the same, or what is left a moment later" \
	between $((LIMIT - 2)) $LIMIT "$(backlog_of c1a)"
check "what it refuses is counted by cause" at_least 1 "$(stat_of c1a drop_child)"
flow_stop
check "for the class, too" same "$(stat_of c1a drop_child)" \
	"$(class_stat_of c1a 1:1 drop_child)"
check "and in all" same "$(stat_of c1a drop_child)" "$(dropped_of c1a)"
check "no child is listed" same "" \
	"$(tc qdisc show dev c1a invisible | grep 'parent 1:')"
tc class change dev c1a parent 1: classid 1:1 psp rate 500mbit
check "all that it took is sent" drained c1a

# --- a child comes, and goes -----------------------------------------------

filled rate 500kbit
check "a child is grafted while frames wait" \
	tc qdisc add dev c1a parent 1:1 handle 11: pfifo limit 10
held=$(backlog_of c1a)
check "the frames are gone, but for what came meanwhile" at_most 10 "$held"
check "the drops of the qdisc know of them" at_least $((LIMIT - 2)) "$(purged_of c1a)"
check "the child is listed" at_least 1 \
	"$(tc qdisc show dev c1a | grep -c 'pfifo 11: parent 1:1')"
check "and named by its class" at_least 1 \
	"$(tc class show dev c1a | grep -c 'leaf 11:')"
check "the child holds its own number" at_most 10 "$(class_backlog_of c1a 1:1)"
check "it goes while it holds frames" tc qdisc del dev c1a parent 1:1
check "the FIFO is back" at_least 11 "$(sleep 0.05; class_backlog_of c1a 1:1)"
check "no class names a child" same 0 "$(tc class show dev c1a | grep -c leaf)"
flow_stop
tc class change dev c1a parent 1: classid 1:1 psp rate 500mbit
check "the rest is sent, and nothing is below zero" drained c1a

port rate 300mbit
flow c1a "delay 0" "skb_priority 65537"
i=0
while [ $i -lt 100 ]; do
	echo "qdisc replace dev c1a parent 1:1 handle 11: pfifo limit 20"
	echo "qdisc del dev c1a parent 1:1"
	echo "qdisc add dev c1a parent 1:1 handle 12: netem delay 1ms"
	echo "qdisc replace dev c1a parent 1:1 handle 13: sfq"
	echo "qdisc del dev c1a parent 1:1"
	i=$((i + 1))
done >/tmp/grafts
check "children come and go under traffic" tc -batch /tmp/grafts
before=$(class_stat_of c1a 1:1 sent_frames)
sleep 0.05
check "the class still sends" at_least 100 \
	$(($(class_stat_of c1a 1:1 sent_frames) - before))
flow_stop
check "nothing stays, none is below zero" drained c1a
check "nor in the class" same 0 "$(class_backlog_of c1a 1:1)"

# --- a child that holds frames back, then the FIFO again ---------------------

port rate 100mbit
tc qdisc add dev c1a parent 1:1 handle 11: netem delay 1s limit 1000
flow c1a "count 20" "skb_priority 65537"
# pktgen begins within 100 ms.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ "$(backlog_of c1a)" = 20 ] && break
	sleep 0.03
done
check "netem holds frames back" same 20 "$(backlog_of c1a)"
check "it goes" tc qdisc del dev c1a parent 1:1
check "with its frames" empty c1a
flow_done
flow c1a "count 20" "skb_priority 65537"
flow_done
check "the FIFO sends" drained c1a
check "every frame" same 20 "$(class_stat_of c1a 1:1 sent_frames)"

# --- the class, the link and the qdisc go -----------------------------------

filled rate 500kbit
check "the class goes with its frames" tc class del dev c1a classid 1:1
flow_stop
check "none is left" drained c1a
filled mode normal
flow_stop
drained c1a
filled rate 500kbit
ip link set c1a down
check "the link goes down: none is left" empty c1a
ip link set c1a up
flow_stop
filled rate 500kbit
check "the qdisc goes with its frames" tc qdisc del dev c1a root
flow_stop

# --- types that look at the frame that waits ---------------------------------

port mode normal
check "guard" tc qdisc change dev c1a root handle 1: psp guard on
tc class add dev c1a parent 1: classid 1:2 psp rate 50mbit
flow c1a "count 400" "delay 0" "skb_priority 65538"
flow_done
flow c1a "count 400" "delay 0" "skb_priority 65537"
flow_done
check "guard: all is sent" drained c1a
check "guard: every frame of the normal class" same 400 \
	"$(class_stat_of c1a 1:1 sent_frames)"

port rate 50mbit
tc qdisc change dev c1a root handle 1: psp period 1ms budget 50%
check "rt" tc class add dev c1a parent 1: classid 1:2 psp mode rt reserve 15kb
burst 100 "skb_priority 65538"
check "rt: every frame is sent" same 100 "$(class_stat_of c1a 1:2 sent_frames)"
check "rt becomes paced while frames wait" \
	tc class change dev c1a parent 1: classid 1:2 psp mode paced rate 500kbit
flow c1a "count 20" "delay 0" "skb_priority 65538"
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ "$(backlog_of c1a)" -ge 5 ] && break
	sleep 0.03
done
check "and rt again" tc class change dev c1a parent 1: classid 1:2 psp mode rt reserve 15kb
flow_done
check "all is sent" drained c1a

cut_cable c1
finish
