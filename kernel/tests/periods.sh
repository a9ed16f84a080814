#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Classes that send by periods (rt, nrt), beside paced and normal ones.
#
#   pktgen, ping --> c1a ==== 10 Mbit/s ==== c1b (sink)
#
# The line is so slow that the guest fills it. In a slow guest the line is SLOW times
# slower and periods are SLOW times longer. A period is 125,000 bytes on the wire; 87,500
# of them are the budget. A frame of pktgen takes 1424 bytes.

. "$(dirname "$0")/lib.sh"

LINE=$((10000000 / SLOW))
PERIOD=$((100 * SLOW))ms
BUDGET=87500
FRAME=1424

cable c1 $LINE sink=1 records_max=0
# psp sends a full queue within two seconds.
ip link set c1a txqueuelen 60
ip addr add 10.7.0.1/24 dev c1a
ip neigh add 10.7.0.2 lladdr 02:00:00:00:00:02 dev c1a

# streams PERIOD RT NRT [OPTION...]: makes a new psp. Class 1:1 (rt) reserves RT, 1:2
# (nrt) reserves NRT; 1:3 is normal, 1:4 paced. Pings go to 1:1, frames to ports 9 to 11
# to 1:2 to 1:4.
streams() {
	period=$1
	rt=$2
	nrt=$3
	shift 3
	tc qdisc del dev c1a root 2>/dev/null || :
	tc qdisc add dev c1a root handle 1: psp default 3 layer wire \
		period "$period" "$@"
	tc class add dev c1a parent 1: classid 1:1 psp mode rt reserve "$rt"
	tc class add dev c1a parent 1: classid 1:2 psp mode nrt reserve "$nrt"
	tc class add dev c1a parent 1: classid 1:3 psp mode normal
	tc class add dev c1a parent 1: classid 1:4 psp rate $((500 / SLOW))kbit
	tc filter add dev c1a parent 1: protocol ip pref 1 u32 \
		match ip protocol 1 0xff classid 1:1
	for minor in 2 3 4; do
		tc filter add dev c1a parent 1: protocol ip pref $minor u32 \
			match ip dport $((minor + 7)) 0xffff classid 1:$minor
	done
}

# others FIRST LAST: sends frames to these ports in turn, without end, three times as
# many as the line carries.
others() {
	flow c1a "delay $((400000 * SLOW))" "udp_dst_min $1" "udp_dst_max $(($2 + 1))"
}

# pings COUNT MILLISECONDS: sends COUNT pings of 1466 bytes on the wire, MILLISECONDS
# apart. It ends a second after the last one.
pings() {
	ping -q -c "$1" -i "$(seconds "$2")" -W "$SLOW" -s 1400 10.7.0.2 >/dev/null 2>&1 || :
}
PING=1466

# moment: reads the root's $periods and $bytes at one instant.
moment() {
	said=$(tc -s qdisc show dev c1a root | tr ' ' '\n')
	periods=$(echo "$said" | grep -A 1 -x periods | tail -n 1)
	bytes=$(echo "$said" | grep -A 1 -x sent_wire_bytes | tail -n 1)
}

# a_second: measures a second of the running flow, then stops it: $elapsed periods,
# $sent bytes.
a_second() {
	nap 300
	moment
	elapsed=$periods sent=$bytes
	nap 1000
	moment
	flow_stop
	elapsed=$((periods - elapsed)) sent=$((bytes - sent))
}

# of MINOR KEY: prints a number of class 1:MINOR.
of() { class_stat_of c1a "1:$1" "$2"; }

# kept: succeeds if every rt frame was within its reservation and on time.
kept() {
	same "0 0 0" "$(of 1 over) $(of 1 deferred) $(of 1 overrun)"
}

# --- what each type gets of a period ----------------------------------------

modes=$(choose hybrid "gap timer hybrid")
changes=$(choose 40 200)
echo "# modes: $modes; changes under traffic: $changes of each"
for mode in $modes; do
	streams $PERIOD 20000 30000 mode $mode
	others 10 10
	a_second
	check "$mode: normal frames alone: periods go by" at_least 9 $elapsed
	check "$mode: normal frames alone stay within the budget" at_most \
		$(((elapsed + 1) * BUDGET + FRAME)) $sent
	check "$mode: normal frames alone use all of the budget" at_least \
		$(((elapsed - 1) * BUDGET - FRAME)) $sent
	check "$mode: periods with a spent budget are counted" at_least 9 "$(stat_of c1a periods_spent)"

	streams $PERIOD 20000 30000 mode $mode
	others 9 9
	a_second
	check "$mode: nrt frames stay within their share of each period" at_most \
		$(((elapsed + 1) * 30000 + FRAME)) $sent
	check "$mode: nrt frames use all of their share" at_least \
		$(((elapsed - 1) * 30000 - FRAME)) $sent
	check "$mode: nrt periods with frames left are counted" \
		at_least 9 "$(of 2 deferred)"
	check "$mode: the port counts the same nrt periods" same "$(of 2 deferred)" \
		"$(stat_of c1a nrt_deferred)"

	streams $PERIOD 20000 30000 mode $mode
	others 9 11
	nap 300
	moment
	periods_before=$periods bytes_before=$bytes
	nrt_before=$(of 2 sent_wire_bytes)
	paced_before=$(of 4 sent_wire_bytes)
	pings 100 10
	paced=$(($(of 4 sent_wire_bytes) - paced_before))
	nrt=$(($(of 2 sent_wire_bytes) - nrt_before))
	moment
	elapsed=$((periods - periods_before))
	flow_stop
	check "$mode: rt frames beside all others are sent in time" kept
	check "$mode: every one of them" drained c1a
	check "$mode: none is lost" same 100 "$(of 1 sent_frames)"
	check "$mode: nrt frames keep to their share beside them" \
		at_most $(((elapsed + 1) * 30000 + FRAME)) $nrt
	check "$mode: and have it" \
		at_least $(((elapsed - 3) * 30000 - FRAME)) $nrt
	# The reservation is 6,250 bytes a period. Periods go by while numbers are read, more
	# of them in a slow guest.
	check "$mode: paced frames keep their rate" at_most \
		$(((elapsed + 1) * 6250 + 2 * FRAME)) $paced
	check "$mode: and have it, too" at_least \
		$(((elapsed - 1 - SLOW) * 6250 - 2 * FRAME)) $paced
	check "$mode: the port keeps to its budget" at_most \
		$(((elapsed + 2) * BUDGET + FRAME)) $((bytes - bytes_before))
done

# --- what does not keep its period is counted by its cause ---------------------

# More comes than is reserved: late frames go before nrt and normal ones (late-first).
streams $PERIOD 9000 76000
others 9 10
moment
periods_before=$periods
pings 60 10 &
nap 800
moment
flow_stop
wait
drained c1a
check "more than is reserved: every frame is sent" same 60 "$(of 1 sent_frames)"
check "more than is reserved: the periods are counted" at_least 4 "$(of 1 over)"
check "more than is reserved: the port counts the same periods" same "$(of 1 over)" \
	"$(stat_of c1a rt_over)"
check "more than is reserved: the late bytes are counted" \
	at_least $((60 * PING - (periods - periods_before + 1) * 9000)) \
	"$(of 1 rt_catchup_bytes)"
check "more than is reserved: the port counts the same late bytes" \
	same "$(of 1 rt_catchup_bytes)" "$(stat_of c1a rt_catchup_bytes)"
check "more than is reserved: no frame waits for a further period" \
	same "0 0" "$(of 1 deferred) $(of 1 overrun)"

# More comes than all periods reserve: normal frames keep the rest of the budget.
streams $PERIOD 1500 1500
others 10 10
nap 300
moment
periods_before=$periods
normal_before=$(of 3 sent_wire_bytes)
pings 60 10
normal=$(($(of 3 sent_wire_bytes) - normal_before))
moment
elapsed=$((periods - periods_before))
check "excess: the periods are counted" at_least 2 "$(of 1 excess)"
check "excess: at most one reservation a period is late" \
	at_most $((8 * 1500 + 2 * PING)) "$(of 1 rt_catchup_bytes)"
check "excess: normal frames have the budget less two reservations" at_least \
	$(((elapsed - 1 - SLOW) * (BUDGET - 2 * 1500 - PING) - FRAME)) $normal
flow_stop
check "excess: every frame is sent" drained c1a
# Only now: a slow guest sends while it reads.
check "excess: the port counts the same periods" same "$(of 1 excess)" "$(stat_of c1a rt_excess)"
check "excess: no frame is lost" same 60 "$(of 1 sent_frames)"

# More comes than the budget: the rest waits from period to period.
streams $PERIOD 20000 30000
burst 55 "skb_priority 65537"
check "within the budget: no frame waits for a further period" same 0 "$(of 1 deferred)"
streams $PERIOD 20000 10000 budget 30000
burst 55 "skb_priority 65537"
check "more than the budget: every frame is sent" same 55 "$(of 1 sent_frames)"
check "more than the budget: each period of waiting is counted" \
	same 2 "$(of 1 deferred)"
check "more than the budget: the port counts the same periods" same 2 \
	"$(stat_of c1a rt_deferred)"
check "more than the budget: both budgets were spent" same 2 \
	"$(stat_of c1a periods_spent)"
check "more than the budget: the line was not too slow" same 0 \
	"$(of 1 overrun)"

# More is reserved than the line carries: 89 frames of 1400 bytes, of which 87 fit.
tc qdisc del dev c1a root
ip link set c1a txqueuelen 200
tc qdisc add dev c1a root handle 1: psp default 3 period $PERIOD budget 100%
tc class add dev c1a parent 1: classid 1:1 psp mode rt reserve 125000
burst 100 "skb_priority 65537"
check "more than the line: every frame is sent" same 100 "$(of 1 sent_frames)"
check "more than the line: the period is counted" same 1 "$(of 1 overrun)"
check "more than the line: the port counts the same period" same 1 \
	"$(stat_of c1a rt_overrun)"
check "more than the line: the budget was not spent" same 0 "$(of 1 deferred)"
ip link set c1a txqueuelen 60

# --- alignment to CLOCK_TAI ------------------------------------------------------

# The guest's clocks differ by whole seconds, so CLOCK_REALTIME has the same phase.
next_second() {
	second=$(date +%s)
	while [ "$(date +%s)" = "$second" ]; do :; done
}

# leaves_at NAME PHASE BEFORE AFTER: sets align to PHASE. Frames that come when a second
# begins leave later than BEFORE, and within AFTER from then on.
leaves_at() {
	check "$1: a change" \
		tc qdisc change dev c1a root handle 1: psp align "$2"
	# The running period keeps its end.
	for _ in 1 2; do
		pings 2 2
	done
	next_second
	pings 5 2 &
	sleep "$3"
	timely "$1: frames wait" same 5 "$(class_backlog_of c1a 1:1)"
	sleep "$4"
	check "$1: frames are gone" same 0 "$(class_backlog_of c1a 1:1)"
	wait
}

streams 1s 20000 30000
leaves_at "periods begin 0.6 s after a second" 600ms 0.2 0.6
leaves_at "periods begin 0.9 s after a second" 900ms 0.6 0.5
# The clock is set forward by 1000 s.
date -s "@$(($(date +%s) + 1000))" >/dev/null
leaves_at "the clock is set" 900ms 0.6 0.5
check "the qdisc shows the phase" sh -c \
	"$TC qdisc show dev c1a root | grep -q 'align 900ms'"

# --- the link ------------------------------------------------------------------

streams $PERIOD 20000 10000
check "the budget is 70 % of the line" same $BUDGET \
	"$(stat_of c1a budget_bytes)"
echo "rate_bps=$((LINE / 2))" >$WIRE/c1/fault
check "half the line has half the budget" same $((BUDGET / 2)) \
	"$(stat_of c1a budget_bytes)"
echo "rate_bps=$((LINE / 10))" >$WIRE/c1/fault
# A device reports at least 1 Mbit/s.
timely "the budget is never below the reservations" same 30000 "$(stat_of c1a budget_bytes)"
# With 12,500 bytes a period, two periods end before the last of 20 frames.
burst 20 "skb_priority 65537"
timely "a line too slow for the reservations is counted" at_least 1 "$(of 1 overrun)"
echo "rate_bps=$LINE" >$WIRE/c1/fault
check "the budget returns with the line" same $BUDGET \
	"$(stat_of c1a budget_bytes)"

streams $PERIOD 20000 1500
others 9 9
nap 100
echo "carrier=0" >$WIRE/c1/fault
nap 200
echo "carrier=1" >$WIRE/c1/fault
nap 200
# pktgen stops without a carrier.
flow_stop
before=$(of 2 sent_frames)
others 9 9
nap 500
flow_stop
check "nrt frames leave after the link was down" at_least $((before + 2)) \
	"$(of 2 sent_frames)"
burst_before=$(of 1 sent_frames)
flow c1a "count 10" "skb_priority 65537"
flow_done
check "rt frames leave after the link was down" same $((burst_before + 10)) "$(of 1 sent_frames)"
check "nrt frames wait" at_least 10 "$(class_backlog_of c1a 1:2)"
ip link set c1a down
check "a device that goes down drops waiting frames" empty c1a
ip link set c1a up
ip neigh replace 10.7.0.2 lladdr 02:00:00:00:00:02 dev c1a
burst 10 "skb_priority 65537"
check "a device that comes up sends rt frames" same $((burst_before + 20)) \
	"$(of 1 sent_frames)"
check "a device that comes up sends rt frames in time" same "0 0" "$(of 1 deferred) $(of 1 overrun)"

# --- classes with waiting frames are deleted, or change their type -----------------

# held: puts forty frames into each of 1:1 and 1:2, few of which leave in a period.
held() {
	streams $PERIOD 1500 1500 budget 3000
	others 9 9
	nap 200
	flow_stop
	tc class change dev c1a parent 1: classid 1:2 psp mode rt reserve 1500
	tc class change dev c1a parent 1: classid 1:1 psp mode nrt reserve 1500
	flow c1a "delay $((400000 * SLOW))" "skb_priority 65537"
	nap 200
	flow_stop
	tc filter del dev c1a parent 1:
}
held
check "the rt class holds frames" at_least 40 "$(class_backlog_of c1a 1:2)"
check "the nrt class holds frames" at_least 40 "$(class_backlog_of c1a 1:1)"
check "the rt class is deleted" tc class del dev c1a classid 1:2
check "the deleted rt class's frames are gone" at_most 60 "$(backlog_of c1a)"
check "the deleted rt class's reservation is free" same 1500 "$(stat_of c1a reserved_bytes)"
check "the nrt class is deleted" tc class del dev c1a classid 1:1
check "the deleted nrt class's frames are gone" empty c1a
check "a port without rt and nrt classes has no period" same "" \
	"$(stat_of c1a period_in_force)"
periods() { tc -s -j qdisc show dev c1a root | json_of periods; }
before=$(periods)
burst 50 "skb_priority 65539"
check "a port without rt and nrt classes counts no period" same "$before" "$(periods)"

for kind in "mode rt reserve 87500" "mode normal" "mode paced rate $((9000 / SLOW))kbit" \
	    "mode dynamic rate $((9000 / SLOW))kbit"; do
	held
	tc class del dev c1a classid 1:1
	waiting=$(backlog_of c1a)
	tc qdisc change dev c1a root handle 1: psp budget 87500
	check "an rt class becomes one with $kind" \
		tc class change dev c1a parent 1: classid 1:2 psp $kind
	check "the changed class sends all $waiting frames" drained c1a
done
held
check "a longer period is accepted while frames wait" \
	tc qdisc change dev c1a root handle 1: psp period $((150 * SLOW))ms
check "a budget of the whole line is accepted while frames wait" tc qdisc change dev c1a root handle 1: psp budget 100%
refuse "a period too short for the reservations is refused" 'budget' \
	tc qdisc change dev c1a root handle 1: psp period $((2 * SLOW))ms
tc class change dev c1a parent 1: classid 1:1 psp mode normal
check "every frame is sent after the changes" drained c1a

# --- changes under traffic ----------------------------------------------------------

streams $PERIOD 20000 30000
others 9 11
i=0
while [ $i -lt "$changes" ]; do
	echo "class change dev c1a parent 1: classid 1:2 psp mode rt reserve $((i * 150 + 1))"
	echo "class change dev c1a parent 1: classid 1:3 psp mode nrt reserve $((20000 - i))"
	echo "class change dev c1a parent 1: classid 1:4 psp mode nrt reserve $((i + 1))"
	echo "qdisc change dev c1a root handle 1: psp period $(((100 + i % 7) * SLOW))ms budget $((80000 + i))"
	echo "qdisc change dev c1a root handle 1: psp align $((i % 90 * SLOW))ms"
	echo "filter del dev c1a parent 1: pref 1"
	echo "class del dev c1a classid 1:1"
	echo "class change dev c1a parent 1: classid 1:2 psp mode nrt reserve 100"
	echo "class change dev c1a parent 1: classid 1:3 psp mode normal"
	echo "class change dev c1a parent 1: classid 1:4 psp mode paced rate $(((i * 40 + 100) / SLOW))kbit"
	echo "class add dev c1a parent 1: classid 1:1 psp mode rt reserve 20000"
	echo "filter add dev c1a parent 1: protocol ip pref 1 u32 match ip protocol 1 0xff classid 1:1"
	echo "qdisc change dev c1a root handle 1: psp align off"
	[ $((i % 3)) = 0 ] && echo "qdisc change dev c1a root handle 1: psp mode gap"
	[ $((i % 3)) = 1 ] && echo "qdisc change dev c1a root handle 1: psp mode timer"
	i=$((i + 1))
done >/tmp/changes
check "classes, periods and budgets change under traffic" tc -batch /tmp/changes
pings 20 10
flow_stop
tc class change dev c1a parent 1: classid 1:2 psp mode normal
check "every frame is sent after changes under traffic" drained c1a
check "every rt frame of the last class is sent" same 20 "$(of 1 sent_frames)"
tc qdisc del dev c1a root

cut_cable c1
finish
