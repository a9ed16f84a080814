#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Classes that go by the period (rt, nrt) beside paced and normal ones.
#
#   pktgen, ping --> c1a ==== 10 Mbit/s ==== c1b (sink)
#
# So slow that the guest fills it: by SLOW slower where it is slow itself, and as
# many times longer are the periods.  One is of 125,000 bytes on the wire, of which
# 87,500 are the budget.  A frame of pktgen takes 1424 bytes.

. "$(dirname "$0")/lib.sh"

LINE=$((10000000 / SLOW))
PERIOD=$((100 * SLOW))ms
BUDGET=87500
FRAME=1424

cable c1 $LINE sink=1 records_max=0
# What is queued is sent within two seconds.
ip link set c1a txqueuelen 60
ip addr add 10.7.0.1/24 dev c1a
ip neigh add 10.7.0.2 lladdr 02:00:00:00:00:02 dev c1a

# streams PERIOD RT NRT [OPTION...]: a new psp whose classes 1:1 and 1:2 reserve so
# much; 1:3 is normal, 1:4 paced.  Pings are of 1:1, frames to ports 9 to 11 of 1:2
# to 1:4.
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

# others FIRST LAST: frames for the classes of these ports in turn, without end;
# three times as many as the line carries.
others() {
	flow c1a "delay $((400000 * SLOW))" "udp_dst_min $1" "udp_dst_max $(($2 + 1))"
}

# pings COUNT MILLISECONDS: so far apart, of 1466 bytes on the wire.  Ends a second
# later.
pings() {
	ping -q -c "$1" -i "$(seconds "$2")" -W "$SLOW" -s 1400 10.7.0.2 >/dev/null 2>&1 || :
}
PING=1466

# moment: of the root, at one instant.
moment() {
	said=$(tc -s qdisc show dev c1a root | tr ' ' '\n')
	periods=$(echo "$said" | grep -A 1 -x periods | tail -n 1)
	bytes=$(echo "$said" | grep -A 1 -x sent_wire_bytes | tail -n 1)
}

# a_second: of what flows already, then stops: $elapsed periods, $sent bytes.
a_second() {
	nap 300
	moment
	elapsed=$periods sent=$bytes
	nap 1000
	moment
	flow_stop
	elapsed=$((periods - elapsed)) sent=$((bytes - sent))
}

# of MINOR KEY
of() { class_stat_of c1a "1:$1" "$2"; }

# kept: no frame of the rt class was beyond what was promised to it.
kept() {
	same "0 0 0" "$(of 1 over) $(of 1 deferred) $(of 1 overrun)"
}

# --- what each type gets of a period ----------------------------------------

for mode in gap timer hybrid; do
	streams $PERIOD 20000 30000 mode $mode
	others 10 10
	a_second
	check "$mode: normal frames alone: periods go by" at_least 9 $elapsed
	check "$mode: normal frames alone have the budget" at_most \
		$(((elapsed + 1) * BUDGET + FRAME)) $sent
	check "$mode: all of it" at_least \
		$(((elapsed - 1) * BUDGET - FRAME)) $sent
	check "$mode: and that is said" at_least 9 "$(stat_of c1a periods_spent)"

	streams $PERIOD 20000 30000 mode $mode
	others 9 9
	a_second
	check "$mode: nrt frames have their share of each period" at_most \
		$(((elapsed + 1) * 30000 + FRAME)) $sent
	check "$mode: all of that" at_least \
		$(((elapsed - 1) * 30000 - FRAME)) $sent
	check "$mode: what waits for the next period is counted" \
		at_least 9 "$(of 2 deferred)"
	check "$mode: by the port, too" same "$(of 2 deferred)" \
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
	# 6,250 bytes a period.  Periods go by while numbers are read, more of them
	# in a slow guest.
	check "$mode: paced frames keep their rate" at_most \
		$(((elapsed + 1) * 6250 + 2 * FRAME)) $paced
	check "$mode: and have it, too" at_least \
		$(((elapsed - 1 - SLOW) * 6250 - 2 * FRAME)) $paced
	check "$mode: the port keeps to its budget" at_most \
		$(((elapsed + 2) * BUDGET + FRAME)) $((bytes - bytes_before))
done

# --- what is not kept is counted, by its cause --------------------------------

# More came than is reserved: late-first, before nrt and normal frames.
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
check "more than is reserved: all is sent" same 60 "$(of 1 sent_frames)"
check "more than is reserved: counted" at_least 4 "$(of 1 over)"
check "more than is reserved: by the port, too" same "$(of 1 over)" \
	"$(stat_of c1a rt_over)"
check "more than is reserved: what is beyond it, to the byte" \
	at_least $((60 * PING - (periods - periods_before + 1) * 9000)) \
	"$(of 1 rt_catchup_bytes)"
check "more than is reserved: by the port to the byte" \
	same "$(of 1 rt_catchup_bytes)" "$(stat_of c1a rt_catchup_bytes)"
check "more than is reserved: nrt pays, none waits for another period" \
	same "0 0" "$(of 1 deferred) $(of 1 overrun)"

# More than all periods have reserved: normal frames keep what is left.
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
check "excess: counted" at_least 2 "$(of 1 excess)"
check "excess: by the port, too" same "$(of 1 excess)" "$(stat_of c1a rt_excess)"
check "excess: one reservation a period is late" \
	at_most $((8 * 1500 + 2 * PING)) "$(of 1 rt_catchup_bytes)"
check "excess: normal frames have the budget but for two reservations" at_least \
	$(((elapsed - 1 - SLOW) * (BUDGET - 2 * 1500 - PING) - FRAME)) $normal
flow_stop
check "excess: all is sent" drained c1a
check "excess: none is lost" same 60 "$(of 1 sent_frames)"

# More than the budget: it waits, period by period.
streams $PERIOD 20000 30000
burst 55 "skb_priority 65537"
check "within the budget: nothing waits for it" same 0 "$(of 1 deferred)"
streams $PERIOD 20000 10000 budget 30000
burst 55 "skb_priority 65537"
check "more than the budget: all is sent" same 55 "$(of 1 sent_frames)"
check "more than the budget: each period that it waited is counted" \
	same 2 "$(of 1 deferred)"
check "more than the budget: by the port, too" same 2 \
	"$(stat_of c1a rt_deferred)"
check "more than the budget: it was spent" same 2 \
	"$(stat_of c1a periods_spent)"
check "more than the budget: the line was not too slow" same 0 \
	"$(of 1 overrun)"

# More than the line carries: 89 frames of 1400 bytes are reserved, 87 fit.
tc qdisc del dev c1a root
ip link set c1a txqueuelen 200
tc qdisc add dev c1a root handle 1: psp default 3 period $PERIOD budget 100%
tc class add dev c1a parent 1: classid 1:1 psp mode rt reserve 125000
burst 100 "skb_priority 65537"
check "more than the line: all is sent" same 100 "$(of 1 sent_frames)"
check "more than the line: counted" same 1 "$(of 1 overrun)"
check "more than the line: by the port, too" same 1 \
	"$(stat_of c1a rt_overrun)"
check "more than the line: the budget was not spent" same 0 "$(of 1 deferred)"
ip link set c1a txqueuelen 60

# --- alignment to CLOCK_TAI ------------------------------------------------------

# The guest's clocks differ by whole seconds.
next_second() {
	second=$(date +%s)
	while [ "$(date +%s)" = "$second" ]; do :; done
}

# leaves_at NAME PHASE BEFORE AFTER: frames that come when a second begins leave
# after BEFORE and within AFTER of that.
leaves_at() {
	check "$1: a change" \
		tc qdisc change dev c1a root handle 1: psp align "$2"
	# The period that runs ends as it was to.
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
# Somebody sets the clock.
date -s "@$(($(date +%s) + 1000))" >/dev/null
leaves_at "the clock is set" 900ms 0.6 0.5
check "the phase is said" sh -c \
	"$TC qdisc show dev c1a root | grep -q 'align 900ms'"

# --- the link ------------------------------------------------------------------

streams $PERIOD 20000 10000
check "the budget is part of the line" same $BUDGET \
	"$(stat_of c1a budget_bytes)"
echo "rate_bps=$((LINE / 2))" >$WIRE/c1/fault
check "of a slower line it is less" same $((BUDGET / 2)) \
	"$(stat_of c1a budget_bytes)"
echo "rate_bps=$((LINE / 10))" >$WIRE/c1/fault
# A device tells no less than 1 Mbit/s.
timely "what is reserved stays" same 30000 "$(stat_of c1a budget_bytes)"
# 12,500 bytes a period: two periods end before the last of 20 frames.
burst 20 "skb_priority 65537"
timely "that the line is too slow for it is counted" at_least 1 "$(of 1 overrun)"
echo "rate_bps=$LINE" >$WIRE/c1/fault
check "the line is as fast as before, and so is the budget" same $BUDGET \
	"$(stat_of c1a budget_bytes)"

streams $PERIOD 20000 1500
others 9 9
nap 100
echo "carrier=0" >$WIRE/c1/fault
nap 200
echo "carrier=1" >$WIRE/c1/fault
nap 200
# pktgen gives up without a carrier.
flow_stop
before=$(of 2 sent_frames)
others 9 9
nap 500
flow_stop
check "after the link was down, nrt frames go again" at_least $((before + 2)) \
	"$(of 2 sent_frames)"
burst_before=$(of 1 sent_frames)
flow c1a "count 10" "skb_priority 65537"
flow_done
check "and rt frames" same $((burst_before + 10)) "$(of 1 sent_frames)"
check "nrt frames wait" at_least 10 "$(class_backlog_of c1a 1:2)"
ip link set c1a down
check "the device goes down: none wait any more" empty c1a
ip link set c1a up
ip neigh replace 10.7.0.2 lladdr 02:00:00:00:00:02 dev c1a
burst 10 "skb_priority 65537"
check "and up: rt frames are sent" same $((burst_before + 20)) \
	"$(of 1 sent_frames)"
check "and up: in time" same "0 0" "$(of 1 deferred) $(of 1 overrun)"

# --- classes go, and become others, with frames held ------------------------------

# held: forty frames in each of 1:1 and 1:2, of which few leave in a period.
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
check "frames are held: rt" at_least 40 "$(class_backlog_of c1a 1:2)"
check "frames are held: nrt" at_least 40 "$(class_backlog_of c1a 1:1)"
check "the rt class goes" tc class del dev c1a classid 1:2
check "and its frames" at_most 60 "$(backlog_of c1a)"
check "what it had reserved is free" same 1500 "$(stat_of c1a reserved_bytes)"
check "the nrt class goes" tc class del dev c1a classid 1:1
check "and its frames, too" empty c1a
check "without such classes there is no period" same "" \
	"$(stat_of c1a period_in_force)"
periods() { tc -s -j qdisc show dev c1a root | json_of periods; }
before=$(periods)
burst 50 "skb_priority 65539"
check "and none begins" same "$before" "$(periods)"

for kind in "mode rt reserve 87500" "mode normal" "mode paced rate $((9000 / SLOW))kbit" \
	    "mode dynamic rate $((9000 / SLOW))kbit"; do
	held
	tc class del dev c1a classid 1:1
	waiting=$(backlog_of c1a)
	tc qdisc change dev c1a root handle 1: psp budget 87500
	check "an rt class becomes one with $kind" \
		tc class change dev c1a parent 1: classid 1:2 psp $kind
	check "and sends all ($waiting)" drained c1a
done
held
check "a longer period with frames held" \
	tc qdisc change dev c1a root handle 1: psp period $((150 * SLOW))ms
check "a budget for all" tc qdisc change dev c1a root handle 1: psp budget 100%
refuse "a period too short for what is reserved" 'budget' \
	tc qdisc change dev c1a root handle 1: psp period $((2 * SLOW))ms
tc class change dev c1a parent 1: classid 1:1 psp mode normal
check "and all is sent" drained c1a

# --- changes under traffic ----------------------------------------------------------

streams $PERIOD 20000 30000
others 9 11
i=0
while [ $i -lt 200 ]; do
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
check "changes of classes that send, and of their periods" tc -batch /tmp/changes
pings 20 10
flow_stop
tc class change dev c1a parent 1: classid 1:2 psp mode normal
check "everything is sent" drained c1a
check "rt frames of the last class, too" same 20 "$(of 1 sent_frames)"
tc qdisc del dev c1a root

cut_cable c1
finish
