#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A child that holds frames back (netem, tbf, fq, or one of these below another) does
# not starve its class, whatever the other classes send.
#
#   pktgen --> c1a ==== 10 Mbit/s ==== c1b (sink)
#
# The line is so slow that the guest fills it at little cost; a frame of pktgen takes
# 1424 bytes.

. "$(dirname "$0")/lib.sh"

LINE=$((10000 / SLOW))
RATE=$((1000 / SLOW))
cable c1 ${LINE}000 sink=1 records_max=0

# filters: sends frames to port 9 to class 1:1, all others to the default, 1:3.
filters() {
	tc filter add dev c1a parent 1: protocol ip pref 1 u32 \
		match ip dport 9 0xffff classid 1:1
}

# psp_port OPTION...: makes a new psp; the caller adds class 1:1.
psp_port() {
	tc qdisc del dev c1a root 2>/dev/null || :
	tc qdisc add dev c1a root handle 1: psp default 3 "$@"
	tc class add dev c1a parent 1: classid 1:3 psp mode normal
}

htb_port() {
	tc qdisc del dev c1a root 2>/dev/null || :
	tc qdisc add dev c1a root handle 1: htb default 3
	tc class add dev c1a parent 1: classid 1:1 htb rate ${RATE}kbit
	tc class add dev c1a parent 1: classid 1:3 htb \
		rate $((LINE * 8 / 10))kbit ceil ${LINE}kbit
}

# child OPTION...: gives class 1:1 this child, with $below below it.
below=
child() {
	# shellcheck disable=SC2086
	tc qdisc add dev c1a parent 1:1 handle 11: "$@"
	[ -z "$below" ] || tc qdisc add dev c1a parent 11:1 handle 12: $below
}

# beside_busy [N]: measures what both classes send in a second. Every Nth of 2000 frames
# (default: third) is for 1:1; the others alone fill the line.
beside_busy() {
	filters
	flow c1a "delay $((500000 * SLOW))" "udp_dst_min 9" \
		"udp_dst_max $((9 + ${1:-3}))"
	# Buckets and queues fill first.
	nap 200
	from=$(packets_of 1:1)
	from_normal=$(packets_of 1:3)
	nap 1000
	sent=$(($(packets_of 1:1) - from))
	sent_normal=$(($(packets_of 1:3) - from_normal))
	flow_stop
}

# --- the last frames of a class leave, however busy the others are -----------

# last_frames NAME: sends 30 frames to 1:1, and then only frames to 1:3, more than the
# line carries. No later frame makes psp ask the child of 1:1 again.
last_frames() {
	filters
	flow c1a "count 60" "delay 0" "udp_dst_min 9" "udp_dst_max 11"
	flow_done
	flow c1a "delay $((500000 * SLOW))" "udp_dst_min 10" "udp_dst_max 10"
	nap 1000
	check "$1: the last frames leave beside a busy class" \
		same 30 "$(packets_of 1:1)"
	flow_stop
}

# last_frames_of NAME CHILD...: tests a child of a class of 1 Mbit/s.
last_frames_of() {
	name=$1
	shift
	psp_port
	tc class add dev c1a parent 1: classid 1:1 psp rate ${RATE}kbit
	child "$@"
	last_frames "$name"
}

last_frames_of "netem" netem delay $((300 * SLOW))ms
if whole "the last frames of tbf and fq"; then
	last_frames_of "tbf" tbf rate $((RATE * 2))kbit burst 3000 limit 1000000
	last_frames_of "fq" fq maxrate $((RATE * 2))kbit quantum 1514 initial_quantum 1514
fi
below="netem delay $((300 * SLOW))ms"
last_frames_of "netem below prio" prio
below=
# The reservation is 10 frames in 100 ms.
kinds=$(choose rt "rt nrt normal")
echo "# the last frames of types: $kinds"
for kind in $kinds; do
	psp_port period $((100 * SLOW))ms
	# shellcheck disable=SC2046
	tc class add dev c1a parent 1: classid 1:1 psp mode $kind \
		$([ $kind = normal ] || echo reserve 15000)
	child netem delay $((300 * SLOW))ms
	last_frames "$kind"
done

# --- a class keeps its rate beside a busy one --------------------------------

# rate_kept NAME: checks that $sent is 1 Mbit/s, 89 frames a second.
rate_kept() {
	check "$1: sends at its rate beside a busy class" at_least 87 "$sent"
	check "$1: sends no faster than its rate" at_most 91 "$sent"
	check "$1: the other class has the rest" at_least "$rest" "$sent_normal"
}
rest=750

# held_back NAME CHILD...: tests a child of a class of 1 Mbit/s.
held_back() {
	name=$1
	shift
	psp_port
	tc class add dev c1a parent 1: classid 1:1 psp rate ${RATE}kbit
	child "$@"
	beside_busy
	rate_kept "$name"
}

held_back "netem with a jitter" netem delay 10ms 5ms limit 1000
below="netem delay 10ms limit 1000"
held_back "netem below tbf" tbf rate $((RATE * 2))kbit burst 3000 limit 1000000
below=
if whole "netem, tbf and fq alone, netem below prio and htb, mode timer, order rate"; then
	held_back "netem" netem delay 10ms limit 1000
	held_back "tbf" tbf rate $((RATE * 2))kbit burst 3000 limit 1000000
	held_back "fq" fq maxrate $((RATE * 2))kbit quantum 1514 initial_quantum 1514
	below="netem delay 10ms limit 1000"
	held_back "netem below prio" prio
	below=

	# The netem is below class 11:1 of an htb.
	psp_port
	tc class add dev c1a parent 1: classid 1:1 psp rate ${RATE}kbit
	child htb default 1
	tc class add dev c1a parent 11: classid 11:1 htb rate $((RATE * 4))kbit
	tc qdisc add dev c1a parent 11:1 handle 12: netem delay 10ms limit 1000
	beside_busy
	rate_kept "netem below a class of htb"
fi

for options in "mode timer" "mode gap" "guard on" "order rate"; do
	case $(choose "$options" all) in "mode timer" | "order rate") continue ;; esac
	# guard holds back normal frames that do not fit before one of 1:1.
	[ "$options" != "guard on" ] || rest=700
	# shellcheck disable=SC2086
	psp_port $options
	tc class add dev c1a parent 1: classid 1:1 psp rate ${RATE}kbit
	child netem delay 10ms limit 1000
	beside_busy
	rate_kept "netem, $options"
	rest=750
done

# A child slower than its class sends as fast as below htb.
slow_child() {
	child tbf rate $((RATE / 2))kbit burst 3000 limit 1000000
	beside_busy
}
htb_port
slow_child
htb_sent=$sent
psp_port
tc class add dev c1a parent 1: classid 1:1 psp rate ${RATE}kbit
slow_child
check "tbf slower than its class: as much as below htb" \
	at_least $((htb_sent - 1)) "$sent"
check "tbf below htb sends at its rate" at_least 42 "$htb_sent"

# --- rt, nrt and normal classes ----------------------------------------------

# 100 frames a second come for 1:1, and leave: 10.7 in 100 ms are reserved, as the link
# layer counts. The budget of all classes is 70 % of the line, 625 frames.
kinds=$(choose nrt "rt nrt")
guards=$(choose on "off on")
echo "# beside a busy class: types $kinds, normal with guard $guards"
for kind in $kinds; do
	psp_port period $((100 * SLOW))ms
	tc class add dev c1a parent 1: classid 1:1 psp mode $kind reserve 15000
	child netem delay 10ms limit 1000
	beside_busy 20
	check "$kind: netem sends what is reserved, beside a busy class" \
		at_least 95 "$sent"
	check "$kind: netem sends no more than came" at_most 105 "$sent"
	check "$kind: the other class has the rest" at_least 480 "$sent_normal"
done

for guard in $guards; do
	psp_port guard $guard
	tc class add dev c1a parent 1: classid 1:1 psp mode normal
	child netem delay 10ms limit 1000
	beside_busy
	check "normal, guard $guard: netem has its half of the line" \
		at_least 420 "$sent"
	check "normal, guard $guard: the other class has its half of the line" at_least 420 "$sent_normal"
done

cut_cable c1
finish
