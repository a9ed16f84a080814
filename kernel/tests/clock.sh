#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Is the wire a clock?  A NIC that drops PAUSE frames of the host's, a line that
# is not what it is said to be, and honest wires under all that befalls them.
#
#   pktgen --> c1a ==== 1 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

cable c1 1000000000 sink=1 ring=256 bql_min=65536

# fresh OPTION...: a new psp with one class, counters at 0.
rate=400mbit
fresh() {
	tc qdisc del dev c1a root 2>/dev/null || :
	tc qdisc add dev c1a root handle 1: psp default 1 "$@"
	tc class add dev c1a parent 1: classid 1:1 psp rate "$rate"
	echo 1 >$WIRE/c1/reset
}

found() { stat_of c1a no_wire_clock; }
said() { dmesg | grep -c 'no wire clock' || :; }
json() { tc -s -j qdisc show dev c1a root | json_of "$1"; }

# rate_over SECONDS: of frames of 1400 bytes, Mbit/s; a tick is 10 ms.
rate_over() {
	begin=$(stat_of c1a sent_frames)
	from=$(sed 's/ .*//;s/[.]//' /proc/uptime)
	sleep "$1"
	end=$(stat_of c1a sent_frames)
	to=$(sed 's/ .*//;s/[.]//' /proc/uptime)
	echo $(((end - begin) * 11200 / 10000 / (to - from)))
}

# --- gap frames that take no time ------------------------------------------------

for mode in gap hybrid auto; do
	echo "drop_control=1" >$WIRE/c1/fault
	fresh mode $mode gap pause
	before=$(said)
	flow c1a "delay 0" "skb_priority 65537"
	sleep 0.3
	check "$mode: a NIC that drops gap frames is found" same 1 "$(found)"
	check "$mode: the mode is timer then" same timer \
		"$(stat_of c1a mode_in_force)"
	check "$mode: for that reason" same no_wire_clock \
		"$(stat_of c1a why_not_hybrid)"
	check "$mode: in JSON, too" same 1 "$(json no_wire_clock)"
	check "$mode: the kernel's log has it once" same $((before + 1)) "$(said)"
	gaps=$(stat_of c1a gap_frames)
	sent=$(rate_over 0.4)
	check "$mode: no more gap frames" same "$gaps" "$(stat_of c1a gap_frames)"
	check "$mode: the timer keeps the rate" at_least 380 "$sent"
	check "$mode: and does not go above it" at_most 420 "$sent"
	echo "carrier=0" >$WIRE/c1/fault
	sleep 0.1
	echo "carrier=1" >$WIRE/c1/fault
	sleep 0.2
	check "$mode: a link that comes back changes nothing" same timer \
		"$(stat_of c1a mode_in_force)"
	flow_stop
	drained c1a
	check "$mode: another kind of gap is another try" \
		tc qdisc change dev c1a root handle 1: psp gap multicast
	check "$mode: which may be right" same "" "$(stat_of c1a why_not_hybrid)"
	flow c1a "delay 0" "skb_priority 65537"
	sleep 0.3
	flow_stop
	drained c1a
	check "$mode: and is: nothing more is found" same 1 "$(found)"
	echo "drop_control=0" >$WIRE/c1/fault
done

# --- a verdict is not put off --------------------------------------------------------

# A byte queue limit that grows while gap frames take no time.
limit_min=/sys/class/net/c1a/queues/tx-0/byte_queue_limits/limit_min
echo "drop_control=1" >$WIRE/c1/fault
fresh mode gap gap pause
flow c1a "delay 0" "skb_priority 65537"
bytes=65536
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 \
	 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40; do
	bytes=$((bytes + 20000))
	echo $bytes >$limit_min
	sleep 0.01
done
check "a byte queue limit that grows does not put the verdict off" same 1 "$(found)"
flow_stop
drained c1a
echo 65536 >$limit_min

# Mode gap would be refused if it were asked for now.
fresh mode gap gap pause
ip link set c1a txqueuelen 0
before=$(said)
flow c1a "delay 0" "skb_priority 65537"
sleep 0.3
check "a device that has lost its queue: it is found all the same" same 1 "$(found)"
check "and the mode is timer then" same timer "$(stat_of c1a mode_in_force)"
check "the kernel's log has it once" same $((before + 1)) "$(said)"
flow_stop
drained c1a
ip link set c1a txqueuelen 1000
echo "drop_control=0" >$WIRE/c1/fault

# --- a line that is not what it is said to be ---------------------------------------

rate=100mbit
fresh mode gap line 250mbit
flow c1a "delay 0" "skb_priority 65537"
sleep 0.4
check "a wire four times as fast as told is no clock" same 1 "$(found)"
flow_stop
drained c1a

rate=1500mbit
fresh mode gap line 2gbit
flow c1a "delay 0" "skb_priority 65537"
sleep 0.4
measured=$(json line_measured_bps)
check "a wire half as fast as told is measured" at_least 980000000 "$measured"
check "and not as more than it is" at_most 1020000000 "$measured"
check "in text, too" at_least 1 "$(tc -s qdisc show dev c1a root |
	grep -c 'line_measured [0-9]*[KMG]*bit')"
check "it is a clock all the same" same 0 "$(found)"
flow_stop
drained c1a

# --- honest wires --------------------------------------------------------------------

rate=400mbit

# honest NAME: nothing was found, and nothing changed.
honest() {
	check "$1: no fault is found" same 0 "$(found)"
	check "$1: the mode stays" same gap "$(stat_of c1a mode_in_force)"
}

fresh mode gap
flow c1a "delay 0" "skb_priority 65537"
# pktgen's thread begins in the way of the softirq that sends: the cable itself
# has recorded 3.47 ms of silence after the first 65 frames.
sleep 0.1
stops=$(json wire_stops)
sleep 0.3
honest "a full wire"
check "a full wire never stood still" same "$stops" "$(json wire_stops)"
measured=$(json line_measured_bps)
check "it is as fast as it says" at_least 980000000 "$measured"
check "and no faster" at_most 1020000000 "$measured"

for i in 1 2 3; do
	echo "carrier=0" >$WIRE/c1/fault
	sleep 0.05
	echo "carrier=1" >$WIRE/c1/fault
	sleep 0.05
done
honest "a link that comes and goes"
flow_stop
flow c1a "delay 0" "skb_priority 65537"
for rate in 100000000 2500000000 50000000 1000000000; do
	echo "rate_bps=$rate" >$WIRE/c1/fault
	sleep 0.1
done
honest "a link that changes its speed"
ip link set c1a down
sleep 0.02
ip link set c1a up
flow_stop
flow c1a "delay 0" "skb_priority 65537"
sleep 0.1
honest "a device that goes down"
flow_stop
drained c1a

cut_cable c1
cable c1 1000000000 sink=1 ring=64 coalesce_frames=32 coalesce_ns=200000
fresh mode gap
flow c1a "delay 0" "skb_priority 65537"
sleep 0.2
honest "completions in batches"
flow_stop
drained c1a
cut_cable c1

# --- stops -----------------------------------------------------------------------------

# A ring of 16 largest frames is 197 us of line.
cable c1 1000000000 sink=1 ring=16 bql_min=30000
fresh mode gap
burst 200 "skb_priority 65537"
check "the wire was never silent" same 0 "$(stat_of c1a wire_stops)"
echo "hold_max_ns=600000 every_ns=3000000 seed=1" >$WIRE/noise
flow c1a "delay 0" "skb_priority 65537"
sleep 0.1
flow_stop
echo "hold_max_ns=0" >$WIRE/noise
drained c1a
check "a host held for longer than the ring lasts stops the wire" \
	at_least 3 "$(stat_of c1a wire_stops)"
check "the longest is known" at_least 250000 "$(json wire_stop_max_ns)"
check "and is not longer than the hold" at_most 600000 "$(json wire_stop_max_ns)"
check "that is no fault of the wire's" same 0 "$(found)"
cut_cable c1
finish
