#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# psp finds out whether the wire is a clock: with a NIC that drops the host's PAUSE
# frames, with a line of another rate than configured, and with honest wires that
# stop, change speed or lose their link.
#
#   pktgen --> c1a ==== 1 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

cable c1 1000000000 sink=1 ring=256 bql_min=65536

# fresh OPTION...: makes a new psp with one class; counters begin at 0.
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

# rate_over SECONDS: prints the rate of 1400-byte frames, Mbit/s; a tick of
# /proc/uptime is 10 ms.
rate_over() {
	begin=$(stat_of c1a sent_frames)
	from=$(sed 's/ .*//;s/[.]//' /proc/uptime)
	sleep "$1"
	end=$(stat_of c1a sent_frames)
	to=$(sed 's/ .*//;s/[.]//' /proc/uptime)
	echo $(((end - begin) * 11200 / 10000 / (to - from)))
}

# --- gap frames that take no time ------------------------------------------------

modes=$(choose auto "gap hybrid auto")
echo "# gap frames that take no time: modes $modes"
for mode in $modes; do
	echo "drop_control=1" >$WIRE/c1/fault
	before=$(said)
	fresh mode $mode gap pause
	flow c1a "delay 0" "skb_priority 65537"
	sleep 0.3
	check "$mode: a NIC that drops gap frames is found" same 1 "$(found)"
	check "$mode: the mode is timer then" same timer \
		"$(stat_of c1a mode_in_force)"
	check "$mode: the reason is the wire" same no_wire_clock \
		"$(stat_of c1a why_not_hybrid)"
	check "$mode: JSON shows it" same 1 "$(json no_wire_clock)"
	check "$mode: the kernel's log reports it once" same $((before + 1)) "$(said)"
	gaps=$(stat_of c1a gap_frames)
	sent=$(rate_over 0.4)
	check "$mode: no further gap frames are sent" same "$gaps" "$(stat_of c1a gap_frames)"
	check "$mode: the timer keeps the rate" at_least 380 "$sent"
	check "$mode: the timer does not exceed the rate" at_most 420 "$sent"
	echo "carrier=0" >$WIRE/c1/fault
	sleep 0.1
	echo "carrier=1" >$WIRE/c1/fault
	sleep 0.2
	check "$mode: a link that comes back changes nothing" same timer \
		"$(stat_of c1a mode_in_force)"
	flow_stop
	drained c1a
	check "$mode: a change of gap frames is accepted" \
		tc qdisc change dev c1a root handle 1: psp gap multicast
	check "$mode: a change of gap frames makes psp try again" same "" "$(stat_of c1a why_not_hybrid)"
	flow c1a "delay 0" "skb_priority 65537"
	sleep 0.3
	flow_stop
	drained c1a
	check "$mode: multicast gap frames keep the wire a clock" same 1 "$(found)"
	echo "drop_control=0" >$WIRE/c1/fault
done

# --- nothing delays a verdict ---------------------------------------------------------

# The byte queue limit grows while gap frames take no time.
limit_min=/sys/class/net/c1a/queues/tx-0/byte_queue_limits/limit_min
fresh mode gap gap pause
proved c1a
check "gap frames that take their time are sent" same gap "$(stat_of c1a mode_in_force)"
echo "drop_control=1" >$WIRE/c1/fault
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

# Without a queue the device would be refused mode gap if it were asked for now.
echo "drop_control=0" >$WIRE/c1/fault
fresh mode gap gap pause
proved c1a
echo "drop_control=1" >$WIRE/c1/fault
ip link set c1a txqueuelen 0
before=$(said)
flow c1a "delay 0" "skb_priority 65537"
sleep 0.3
check "the wire of a device without a queue is still found to be no clock" same 1 "$(found)"
check "the port without a queue is then in mode timer" same timer "$(stat_of c1a mode_in_force)"
check "the kernel's log reports it once" same $((before + 1)) "$(said)"
flow_stop
drained c1a
ip link set c1a txqueuelen 1000
echo "drop_control=0" >$WIRE/c1/fault

# --- a line of another rate than configured -------------------------------------------

rate=100mbit
fresh mode gap line 250mbit
flow c1a "delay 0" "skb_priority 65537"
sleep 0.4
check "a wire four times as fast as configured is found to be no clock" same 1 "$(found)"
flow_stop
drained c1a

rate=1500mbit
fresh mode gap line 2gbit
flow c1a "delay 0" "skb_priority 65537"
sleep 0.4
measured=$(json line_measured_bps)
check "a wire half as fast as configured: the measured rate is not too low" at_least 980000000 "$measured"
check "a wire half as fast as configured: the measured rate is not too high" at_most 1020000000 "$measured"
check "a wire half as fast as configured: text shows the measured rate" at_least 1 "$(tc -s qdisc show dev c1a root |
	grep -c 'line_measured [0-9]*[KMG]*bit')"
check "a wire half as fast as configured is still a clock" same 0 "$(found)"
flow_stop
drained c1a

# --- honest wires --------------------------------------------------------------------

rate=400mbit

# honest NAME: checks that psp found no fault and changed nothing.
honest() {
	check "$1: no fault is found" same 0 "$(found)"
	check "$1: the mode stays" same gap "$(stat_of c1a mode_in_force)"
}

# The processor that sends also runs this script's commands, and each may hold the softirq
# that sends for more than the 0.5 ms that 64 kB last: the wire then stands still. 300 kB
# last 2.4 ms. pktgen's thread holds it at its beginning, now and then for longer: the
# cable itself has recorded 3.47 ms of silence after the first 65 frames. So stops count
# from 0.1 s on.
echo 300000 >$limit_min
fresh mode gap
flow c1a "delay 0" "skb_priority 65537"
sleep 0.1
stops=$(json wire_stops)
echo "# at the beginning of a full wire: stops $stops, the longest $(json wire_stop_max_ns) ns"
sleep 0.3
honest "a full wire"
check "a full wire never stood still" same "$stops" "$(json wire_stops)"
measured=$(json line_measured_bps)
check "a full wire: the measured rate is not below the line's" at_least 980000000 "$measured"
check "a full wire: the measured rate is not above the line's" at_most 1020000000 "$measured"
echo 65536 >$limit_min

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
check "the longest stop is not longer than the hold" at_most 600000 "$(json wire_stop_max_ns)"
check "a stop is not taken for a wire without a clock" same 0 "$(found)"
cut_cable c1
finish
