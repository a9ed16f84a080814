# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# The cable's faults, under a plain queue and under psp: nothing is lost but what
# is counted, and it goes on afterwards.  Runs in a guest, with kernel/tests/lib.sh.

# shellcheck source=kernel/tests/lib.sh
. /tests/lib.sh

counter() {
	sed -n "s/^$1 //p" $WIRE/f/counters
}

fault() {
	echo "$1" >$WIRE/f/fault
}

# grows KEY: within two seconds.
grows() {
	before=$(counter "$1")
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		sleep 0.1
		[ "$(counter "$1")" -gt "$before" ] && return 0
	done
	echo "$1 stays at $before"
	return 1
}

plain() {
	tc qdisc add dev fa root pfifo limit 1000
}

paced() {
	tc qdisc add dev fa root handle 1: psp default 1 &&
		tc class add dev fa parent 1: classid 1:1 psp rate 80mbit
}

busy() {
	fault "end=a busy_every=5 seed=3"
	flow fa "count 500" "delay 150000"
	flow_done
	check "$1: drained in spite of a busy driver" drained fa
	check "$1: the driver was busy" at_least 50 "$(counter a.busy_faults)"
	check "$1: not a frame is lost" same 500 "$(counter a.data_frames)"
	fault "end=a busy_every=0"
}

carrier() {
	flow fa "delay 50000"
	sleep 0.05
	fault "carrier=0"
	sleep 0.2
	check "$1: both ends see no carrier" same "0 0" \
		"$(cat /sys/class/net/fa/carrier) $(cat /sys/class/net/fb/carrier)"
	sent=$(counter a.data_frames)
	sleep 0.2
	check "$1: nothing leaves without a carrier" same "$sent" "$(counter a.data_frames)"
	check "$1: the queue holds what it says" backlog_of fa
	flow_stop			# pktgen has given up by itself
	fault "carrier=1"
	flow fa "delay 150000"
	check "$1: frames leave again" grows a.data_frames
	flow_stop
	check "$1: drained after the carrier is back" drained fa
}

speed() {
	ip monitor link >/tmp/events &
	monitor=$!
	flow fa "delay 150000"
	sleep 0.1
	fault "rate_bps=20000000"
	sleep 0.1
	check "$1: the devices tell the new speed" same "20 20" \
		"$(cat /sys/class/net/fa/speed) $(cat /sys/class/net/fb/speed)"
	before=$(counter a.wire_bytes)
	start=$(sed -n 's/^now_ns //p' $WIRE/idle)
	sleep 0.4
	after=$(counter a.wire_bytes)
	stop=$(sed -n 's/^now_ns //p' $WIRE/idle)
	flow_stop
	rate=$(((after - before) * 8000 / ((stop - start) / 1000000)))
	# a ring of 256 frames may have been given before
	check "$1: no faster than the line now is ($rate)" at_least "$rate" 21000000
	check "$1: nor much slower ($rate)" at_least 15000000 "$rate"
	kill $monitor
	check "$1: a change was announced" grep -q ' fa: ' /tmp/events
	fault "rate_bps=100000000"
	check "$1: drained at the old speed" drained fa
}

for kind in plain paced; do
	cable f 100000000
	$kind
	busy $kind
	carrier $kind
	speed $kind
	frames=$(counter a.data_frames)
	check "$kind: every frame sent has a fate" same "$frames" \
		"$(($(counter a.delivered) + $(counter a.sunk)))"
	refuse "$kind: busy without an end" error sh -c "echo busy_every=2 >$WIRE/f/fault"
	refuse "$kind: an end without busy" error sh -c "echo end=a >$WIRE/f/fault"
	refuse "$kind: a carrier of two" error sh -c "echo carrier=2 >$WIRE/f/fault"
	cut_cable f
done

# Several queues: the second one goes on while the first one's frames wait.
cable q 10000000 queues=2 ring=4
check "two queues" test -d /sys/class/net/qa/queues/tx-1
check "and no third one" test ! -e /sys/class/net/qa/queues/tx-2
flow qa "queue_map_min 0" "queue_map_max 1" "delay 100000"
sleep 0.3
check "one end down under traffic" ip link set qb down
check "and up" ip link set qb up
check "both down under traffic" ip link set qa down
check "and up again" ip link set qa up
flow_stop
check "drained" drained qa
flow qa "queue_map_min 0" "queue_map_max 1" "delay 100000"
sleep 0.1
check "deleted under traffic" cut_cable q
flow_stop

finish
