#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Many children hold frames back at once. psp soon asks one that is ready, and asks
# none without need.
#
#   pktgen --> c1a ==== 10 Mbit/s ==== c1b (sink)
#   TCP, pktgen --> c2a ==== 10 Mbit/s ==== c2b (namespace two)
#
# The line is so slow that the guest fills it at little cost; a frame of pktgen takes
# 1424 bytes. pktgen begins with the port after udp_dst_min, and sends to udp_dst_min at
# the end of each round. It ends when its last frame has been sent, which goes to 1:3
# everywhere here.

. "$(dirname "$0")/lib.sh"

LINE=$((10000 / SLOW))
RATE=$((1000 / SLOW))
cable c1 ${LINE}000 sink=1 records_max=0

retries() { stat_of c1a child_retries; }

# psp_port NETEM-DELAY OPTION...: makes a new psp. Frames to port 9 go to class 1:1,
# with 1 Mbit/s and a netem of that delay, all others to 1:3, a normal class.
psp_port() {
	netem_delay=$1
	shift
	tc qdisc del dev c1a root 2>/dev/null || :
	tc qdisc add dev c1a root handle 1: psp default 3 "$@"
	tc class add dev c1a parent 1: classid 1:1 psp rate ${RATE}kbit
	tc class add dev c1a parent 1: classid 1:3 psp mode normal
	tc qdisc add dev c1a parent 1:1 handle 11: netem delay "$netem_delay" limit 1000
	tc filter add dev c1a parent 1: protocol ip pref 1 u32 \
		match ip dport 9 0xffff classid 1:1
}

# --- a class gets no credit for the time in which its child held frames back --

psp_port $((500 * SLOW))ms
flow c1a "count 60" "delay 0" "udp_dst_min 8" "udp_dst_max 10"
flow_done
nap 100
check "netem gives nothing before its delay ends" same 0 "$(packets_of 1:1)"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	nap 20
	[ "$(packets_of 1:1)" = 0 ] || break
done
nap 30
check "netem gives 30 frames at once: they go at the class's rate" \
	at_most 7 "$(packets_of 1:1)"
check "the class sends from the instant that netem gives the frames" at_least 4 "$(packets_of 1:1)"
check "every frame that netem gave is sent" drained c1a

# --- many classes are throttled at once --------------------------------------

# throttled COUNT DELAY: adds COUNT classes from 1:100 on, each with a frame in a netem
# of that delay. It also adds class 1:2 for port 10, whose clock is seconds ahead after
# each frame.
throttled() {
	i=0
	while [ $i -lt "$1" ]; do
		id=$(printf '%x' $((256 + i)))
		echo "class add dev c1a parent 1: classid 1:$id psp rate 1mbit"
		echo "qdisc add dev c1a parent 1:$id netem delay $2"
		echo "filter add dev c1a parent 1: protocol ip pref 2 u32 match ip dport $((100 + i)) 0xffff classid 1:$id"
		i=$((i + 1))
	done >/tmp/throttled
	tc -batch /tmp/throttled
	tc class add dev c1a parent 1: classid 1:2 psp rate 4kbit
	tc filter add dev c1a parent 1: protocol ip pref 3 u32 \
		match ip dport 10 0xffff classid 1:2
	flow c1a "count $(($1 + 1))" "delay 0" "udp_dst_min 99" \
		"udp_dst_max $((100 + $1))"
	flow_done
	nap 100
	check "$1 classes hold a frame each" same "$1" "$(backlog_of c1a)"
}

# ready LAST-PORT FRAMES: sends FRAMES to the ports 9 to LAST-PORT and 8 in turn. $sent
# is what 1:1 sends within 40 ms.
ready() {
	from=$(packets_of 1:1)
	flow c1a "count $2" "delay 0" "udp_dst_min 8" "udp_dst_max $(($1 + 1))"
	flow_done
	nap 40
	sent=$(($(packets_of 1:1) - from))
}

for count in 20 200; do
	psp_port $((10 * SLOW))ms
	throttled $count 60s
	asked=$(retries)
	nap 1000
	check "$count throttled children and no traffic: none is asked" \
		same "$asked" "$(retries)"
	ready 9 2
	check "$count throttled children: one that is ready sends" same 1 "$sent"
	check "$count throttled children: they are asked a few times for it" \
		at_most $((10 * count + 10)) $(($(retries) - asked))
	# The port waits, because the second frame of 1:2 waits for its clock.
	ready 10 6
	check "$count throttled children, and the port waits: one that is ready sends" \
		same 2 "$sent"

	flow c1a "delay $((500000 * SLOW))" "udp_dst_min 7" "udp_dst_max 10"
	nap 200
	from=$(packets_of 1:1)
	nap 1000
	check "$count throttled children, and the port is busy: one that is ready sends" \
		at_least 87 $(($(packets_of 1:1) - from))
	flow_stop
	check "$count throttled children: the port goes while they hold frames" \
		tc qdisc del dev c1a root
done

# Gap frames fill the wire, and psp asks two children for each.
psp_port 10s mode gap
proved c1a
throttled 200 60s
flow c1a "count 6" "delay 0" "udp_dst_min 8" "udp_dst_max 11"
flow_done
gaps=$(stat_of c1a gap_frames)
asked=$(retries)
nap 500
asked=$(($(retries) - asked))
gaps=$(($(stat_of c1a gap_frames) - gaps))
check "mode gap: the port waits for a clock" at_least 100 "$gaps"
check "200 throttled children: a gap frame asks two of them" \
	at_most $((2 * gaps + 20)) "$asked"
tc qdisc del dev c1a root

cut_cable c1

# --- TCP ---------------------------------------------------------------------

ip netns add two
cable c2 ${LINE}000 records_max=0
ip link set c2b netns two
ip addr add 10.2.0.1/24 dev c2a
ip -n two addr add 10.2.0.2/24 dev c2b
ip -n two link set c2b up
ip neigh add 10.2.0.2 lladdr "$(ip -n two -br link show c2b |
	tr -s ' ' | cut -d ' ' -f 3)" dev c2a
# The far end knows the address too, so no ARP waits behind the busy class.
ip -n two neigh add 10.2.0.1 lladdr "$(ip -br link show c2a |
	tr -s ' ' | cut -d ' ' -f 3)" dev c2b

"$IP" netns exec two psp-recv --port 7 --tcp >/dev/null 2>&1 &
receiver=$!

# tcp_beside_busy: measures how many bytes of TCP class 1:1 sends in two seconds.
tcp_beside_busy() {
	tc qdisc add dev c2a parent 1:1 handle 11: netem delay 10ms limit 1000
	tc filter add dev c2a parent 1: protocol ip pref 1 u32 \
		match ip protocol 6 0xff classid 1:1
	flow c2a "delay $((800000 * SLOW))"
	nap 200
	psp-send --epoch-ns "$(now_ns)" --stop-ns $((SLOW * 2000000000)) \
		--flow to=10.2.0.2:7,proto=tcp >/dev/null
	tcp_bytes=$(tc -s class show dev c2a classid 1:1 |
		sed -n 's/^ Sent \([0-9]*\) bytes.*/\1/p')
	flow_stop
	tc qdisc del dev c2a root
}

tc qdisc add dev c2a root handle 1: htb default 3
tc class add dev c2a parent 1: classid 1:1 htb rate ${RATE}kbit
tc class add dev c2a parent 1: classid 1:3 htb \
	rate $((LINE * 8 / 10))kbit ceil ${LINE}kbit
tcp_beside_busy
htb_bytes=$tcp_bytes
tc qdisc add dev c2a root handle 1: psp default 3
tc class add dev c2a parent 1: classid 1:1 psp rate ${RATE}kbit
tc class add dev c2a parent 1: classid 1:3 psp mode normal
tcp_beside_busy
check "TCP through netem below htb, beside a busy class" \
	at_least 200000 "$htb_bytes"
check "TCP through netem below psp: as much" \
	at_least $((htb_bytes * 95 / 100)) "$tcp_bytes"
kill $receiver
ip netns del two
finish
