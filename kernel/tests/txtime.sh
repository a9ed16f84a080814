#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Launch times: classes with txtime, and what becomes of sockets with SO_TXTIME.
#
#   psp-send -> c1a (psp) ==== 1 Gbit/s ==== c1b (sink)
#
# The cable records when each frame left; psp-launched compares that with the launch
# time in the frame.  Half of the smallest gap is 42 bytes, 336 ns.

. "$(dirname "$0")/lib.sh"

# The longest that an interrupt of the timer takes; on a slower machine give a longer one.
INTERRUPT_NS=${INTERRUPT_NS:-2000}

SNAP=64
# The driver has frames for half a millisecond, longer than an interrupt is held up.
cable c1 1000000000 sink=1 snap=$SNAP bql_min=65536
ip addr add 10.9.0.1/24 dev c1a
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev c1a

# fresh MODE OPTION...: makes a new psp on c1a; SO_PRIORITY 1:1 is a class with these options.
fresh() {
	mode=$1
	shift
	tc qdisc del dev c1a root 2>/dev/null || :
	tc qdisc add dev c1a root handle 1: psp mode "$mode" default 3
	tc class add dev c1a parent 1: classid 1:1 psp "$@"
	tc class add dev c1a parent 1: classid 1:2 psp rate 300mbit
	tc class add dev c1a parent 1: classid 1:3 psp mode normal
	proved c1a
	echo 1 >$WIRE/c1/reset
}

# send MILLISECONDS SPEC...: sends for so long; the report is in /tmp/sent.  The program
# needs milliseconds to start, and would send what it missed at once.
send() {
	stop_ns=$(($1 * 1000000 + 20000000))
	shift
	for spec; do
		set -- "$@" --flow "to=10.9.0.2:$spec"
		shift
	done
	psp-send --epoch-ns "$(now_ns)" --start-ns 20000000 --stop-ns $stop_ns \
		--sndbuf 4000000 "$@" >/tmp/sent
}

# launch MILLISECONDS SPEC: sends to port 9 through class 1:1, until all has left.
launch() {
	send "$1" "9,class=1:1,$2"
	drained c1a
}

# errors: prints what psp-launched finds on the cable.
errors() { psp-launched $WIRE/c1/timeline.a $WIRE/c1/snap.a 9 $SNAP; }

# launched KEY: prints a number of what psp-launched finds on the cable.
launched() {
	errors | tr ',{}' '\n\n\n' | sed -n "s/^\"$1\"://p"
}
class_of() { class_stat_of c1a 1:1 "$1"; }

# A frame of 1242 bytes each 213 us, no multiple of anything that psp counts in.
STREAM="payload=1200,rate=46647887"
# Half a gap frame of 84 bytes, and the byte to which psp rounds an instant.
HALF_GAP=344
# A launch time is so far ahead when its frame is sent.  It is no whole number of frames and
# what mode hybrid wakes up ahead: the sender's timer and psp's are due at different times.
LEAD=2900000

# all_sent FRAMES: succeeds if so many left, and none was dropped or reported.
all_sent() {
	same "$1 0 0" "$(launched frames) $(sent missed) $(sent refused)" &&
		same " " "$(class_of drop_txtime_missed) $(class_of drop_txtime_invalid)"
}

# --- when frames leave --------------------------------------------------------

clocks=$(choose tai "monotonic tai")
noises=$(choose 60000 "0 60000")
echo "# when frames leave: clocks $clocks, interrupts held up to $noises ns"
for noise in $noises; do
	echo "hold_max_ns=$noise every_ns=500000 seed=3" >$WIRE/noise
	for mode in gap hybrid timer; do
		for clock in $clocks; do
			what="$mode, $clock, interrupts held up to $noise ns"
			fresh $mode rate 500mbit txtime $clock
			launch 200 "$STREAM,txtime=$clock,lead=$LEAD"
			echo "# $what: $(errors)"
			check "$what: every frame leaves" all_sent 939
			case $mode-$noise in
			gap-* | hybrid-0)
				check "$what: none is half a gap early" at_least -$HALF_GAP "$(launched least_ns)"
				check "$what: none is half a gap late" at_most $HALF_GAP "$(launched most_ns)"
				;;
			hybrid-*)
				check "$what: half of them leave within half a gap" \
					between -$HALF_GAP $HALF_GAP "$(launched p50_ns)"
				;;
			timer-*)
				check "$what: none is early" at_least 0 "$(launched least_ns)"
				check "$what: half of them are not late by more than a timer" \
					at_most 20000 "$(launched p50_ns)"
				;;
			esac
		done
	done
done
echo "hold_max_ns=0" >$WIRE/noise

# The carrier goes and comes amid a stream: the wire has to prove itself anew.  Trials of gap frames,
# a millisecond and more of them, leave launch times alone, and mode timer goes on.
echo "hold_max_ns=60000 every_ns=500000 seed=3" >$WIRE/noise
fresh gap rate 500mbit txtime monotonic
epoch=$(now_ns)
psp-send --epoch-ns "$epoch" --start-ns 20000000 --stop-ns 1500000000 --sndbuf 4000000 \
	--flow "to=10.9.0.2:5,class=1:3,rate=50000000" \
	--flow "to=10.9.0.2:9,class=1:1,$STREAM,txtime=monotonic,lead=$LEAD" >/tmp/sent &
nap 100
echo "carrier=0" >$WIRE/c1/fault
nap 20
echo "carrier=1" >$WIRE/c1/fault
echo 1 >$WIRE/c1/reset
wait
drained c1a
echo "# a link that comes back: $(errors)"
check "a link that comes back: frames leave" at_least 500 "$(launched frames)"
check "a link that comes back: none is half a gap early" at_least -$HALF_GAP "$(launched least_ns)"
# What waits when the link comes back is late by what that takes, too.
check "a link that comes back: none waits for a trial" at_most 360000 "$(launched most_ns)"
echo "hold_max_ns=0" >$WIRE/noise

# The kernel's own byte queue limit: the driver's frames last as long as those it is given
# before, and then the wire runs dry.
cable c2 1000000000 sink=1 snap=$SNAP
ip addr add 10.8.0.1/24 dev c2a
ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev c2a
for noise in $noises; do
	echo "hold_max_ns=$noise every_ns=500000 seed=3" >$WIRE/noise
	tc qdisc add dev c2a root handle 1: psp mode gap default 1
	tc class add dev c2a parent 1: classid 1:1 psp rate 500mbit txtime tai
	proved c2a
	echo 1 >$WIRE/c2/reset
	psp-send --epoch-ns "$(now_ns)" --start-ns 20000000 --stop-ns 220000000 --sndbuf 4000000 \
		--flow "to=10.8.0.2:9,class=1:1,$STREAM,txtime=tai,lead=$LEAD" >/tmp/sent
	drained c2a
	what="gap, a small byte queue limit, interrupts held up to $noise ns"
	echo "# $what: $(psp-launched $WIRE/c2/timeline.a $WIRE/c2/snap.a 9 $SNAP)"
	check "$what: every frame leaves" same 939 \
		"$(psp-launched $WIRE/c2/timeline.a $WIRE/c2/snap.a 9 $SNAP | tr -dc '0-9,' | cut -d, -f1)"
	tc qdisc del dev c2a root
done
echo "hold_max_ns=0" >$WIRE/noise

# The sender's timer is due when mode hybrid hands over a gap frame, each time: this gap
# frame leaves later than psp can know, by as long as the interrupt takes.
fresh hybrid rate 500mbit txtime monotonic
launch 200 "$STREAM,txtime=monotonic,lead=3000000"
echo "# hybrid, timers in step: $(errors)"
check "timers in step: one in ten at most is half a gap early" \
	at_least -$HALF_GAP "$(launched p10_ns)"
check "timers in step: half of them leave within half a gap" \
	at_most $HALF_GAP "$(launched p50_ns)"
check "timers in step: none is late by more than two interrupts" \
	at_most $((2 * INTERRUPT_NS)) "$(launched most_ns)"

# Two sockets whose frames come in another order than they leave.
fresh gap rate 500mbit txtime monotonic
send 100 "9,name=far,class=1:1,$STREAM,txtime=monotonic,lead=9000000" \
	"9,name=near,class=1:1,$STREAM,txtime=monotonic,lead=3100000"
drained c1a
check "two sockets: every frame leaves" same 940 "$(launched frames)"
check "two sockets: none is half a gap early" at_least -$HALF_GAP "$(launched least_ns)"
check "two sockets: one in a hundred at most is half a gap late" at_most $HALF_GAP "$(launched p99_ns)"

# Beside a paced class that is always busy, and normal frames.
fresh hybrid rate 100mbit txtime monotonic
send 100 "9,class=1:1,$STREAM,txtime=monotonic,lead=3000000" \
	"10,class=1:2,rate=350000000" "11,class=1:3,rate=200000000"
drained c1a
echo "# beside others: $(errors)"
check "beside others: every frame leaves" same 470 "$(launched frames)"
check "beside others: none waits for more than three frames of the line" \
	at_most 40000 "$(launched p99_ns)"
check "beside others: the paced class keeps its rate" at_least 2400 "$(class_stat_of c1a 1:2 sent_frames)"

# --- what is refused and dropped ------------------------------------------------

# refused_by WHAT OPTIONS SPEC: every frame of the flow is refused, counted and reported.
refused_by() {
	what=$1
	# shellcheck disable=SC2086
	fresh timer rate 500mbit $2
	launch 20 "$STREAM,$3"
	check "$what: none leaves" same 0 "$(launched frames)"
	check "$what: all are counted" same 94 "$(class_of drop_txtime_invalid)"
	check "$what: the qdisc counts them too" same 94 "$(stat_of c1a drop_txtime_invalid)"
	check "$what: tc's sum of drops is the same" same 94 \
		"$(tc -s class show dev c1a classid 1:1 | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')"
}
refused_by "launch times that have passed" "txtime monotonic" "txtime=monotonic,lead=-5000000"
check "launch times that have passed: all are reported" same 94 "$(sent refused)"
refused_by "another clock" "txtime tai" "txtime=monotonic,lead=3000000"
check "another clock: all are reported" same 94 "$(sent refused)"
refused_by "a clock that psp has not" "txtime tai" "txtime=real,lead=3000000"
check "a clock that psp has not: all are reported" same 94 "$(sent refused)"
refused_by "strict times in deadline mode" "txtime monotonic txtime-deadline on" "txtime=monotonic,lead=3000000"
check "strict times in deadline mode: all are reported" same 94 "$(sent refused)"
refused_by "deadlines in strict mode" "txtime monotonic" "txtime=monotonic-deadline,lead=3000000"
check "deadlines in strict mode: all are reported" same 94 "$(sent refused)"
refused_by "beyond the horizon" "txtime monotonic horizon 1s" "txtime=monotonic,lead=1100000000"
check "beyond the horizon: all are reported" same 94 "$(sent refused)"
refused_by "no launch time" "txtime monotonic" "batch=1"

fresh timer rate 500mbit txtime monotonic
launch 20 "$STREAM,txtime=monotonic,lead=-500000"
check "late by less than a millisecond: all leave" all_sent 94
# A timer is later than this.
fresh timer rate 500mbit txtime monotonic txtime-late 1us
launch 20 "$STREAM,txtime=monotonic,lead=3000000"
check "later than txtime-late: none leaves" same 0 "$(launched frames)"
check "later than txtime-late: all are counted" same 94 "$(class_of drop_txtime_missed)"
check "later than txtime-late: the qdisc counts them too" same 94 "$(stat_of c1a drop_txtime_missed)"
check "later than txtime-late: all are reported" same 94 "$(sent missed)"
check "later than txtime-late: the queue is empty, not below" empty c1a

# --- deadline mode --------------------------------------------------------------

fresh hybrid rate 500mbit txtime tai txtime-deadline on
launch 20 "$STREAM,txtime=tai-deadline,lead=3000000"
check "deadlines: all leave" all_sent 94
check "deadlines: frames leave when they come" at_most -2500000 "$(launched most_ns)"

# --- changes --------------------------------------------------------------------

# waiting: 94 frames wait for two seconds.
waiting() {
	fresh hybrid rate 500mbit txtime monotonic
	send 20 "9,class=1:1,$STREAM,txtime=monotonic,lead=2000000000" &
	nap 100
	check "$1: frames wait" same 94 "$(class_backlog_of c1a 1:1)"
}
waiting "a change"
refuse "another clock while frames wait is refused" "94 frames wait, expected none" \
	tc class change dev c1a parent 1: classid 1:1 psp txtime tai
check "another rate while frames wait" tc class change dev c1a parent 1: classid 1:1 psp rate 100mbit
refuse "a qdisc below the class is refused" "expected none, the class has txtime" \
	tc qdisc add dev c1a parent 1:1 handle 11: pfifo
wait
drained c1a
check "a change: every frame leaves" same 94 "$(launched frames)"
check "a change: half of them leave within half a gap" between -$HALF_GAP $HALF_GAP "$(launched p50_ns)"
check "without frames the option goes" tc class change dev c1a parent 1: classid 1:1 psp txtime off
waiting "a class that is deleted"
check "the class is deleted" tc class del dev c1a classid 1:1
check "no frame of the deleted class stays" empty c1a
wait
waiting "a link that goes down"
ip link set c1a down
check "a link that goes down leaves no frame" empty c1a
ip link set c1a up
# The kernel may take a second to notice the carrier.
nap 1200
ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev c1a
wait

# What psp noted of frames that went with the link says nothing of those that come after it.
fresh gap rate 500mbit txtime monotonic
send 100 "9,class=1:1,$STREAM,txtime=monotonic,lead=$LEAD" 2>/dev/null &
nap 80
ip link set c1a down
nap 500
ip link set c1a up
nap 1200
ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev c1a
wait
echo 1 >$WIRE/c1/reset
launch 20 "$STREAM,txtime=monotonic,lead=$LEAD"
check "a link that comes back: every frame leaves" \
	same "94 0 0" "$(launched frames) $(sent missed) $(sent refused)"
check "a link that comes back: none is half a gap early" at_least -$HALF_GAP "$(launched least_ns)"
check "a link that comes back: none is half a gap late" at_most $HALF_GAP "$(launched most_ns)"

waiting "a qdisc that is deleted"
check "the qdisc is deleted" tc qdisc del dev c1a root
wait

# --- CLOCK_TAI is set -------------------------------------------------------------

fresh hybrid rate 500mbit txtime tai
send 400 "9,class=1:1,$STREAM,txtime=tai,lead=$LEAD" &
nap 200
date -s "@$(($(date +%s) + 100))" >/dev/null
wait
drained c1a
echo "# CLOCK_TAI set: $(errors)"
check "CLOCK_TAI set: only frames that waited then are lost" at_least 1850 "$(launched frames)"
check "CLOCK_TAI set: each frame left or was reported" \
	same 1878 $(($(launched frames) + $(sent missed) + $(sent refused)))
check "CLOCK_TAI set: one in ten at most is half a gap early" at_least -$HALF_GAP "$(launched p10_ns)"
check "CLOCK_TAI set: one in a hundred at most is half a gap late" at_most $HALF_GAP "$(launched p99_ns)"

# Set back by an hour, launch times are an hour away: 94 frames that wait, and those that come.
tai() { date -s "@$(($(date +%s) + $1))" >/dev/null; }
fresh hybrid rate 500mbit txtime tai
send 20 "9,class=1:1,$STREAM,txtime=tai,lead=2000000000" &
nap 100
check "CLOCK_TAI set back: frames wait" same 94 "$(class_backlog_of c1a 1:1)"
tai -3600
nap 300
check "CLOCK_TAI set back: no frame waits beyond the horizon" empty c1a
check "CLOCK_TAI set back: all are counted" same 94 "$(class_of drop_txtime_invalid)"
check "CLOCK_TAI set back: tc's sum of drops is the same" same 94 \
	"$(tc -s class show dev c1a classid 1:1 | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')"
wait
fresh hybrid rate 500mbit txtime tai
send 400 "9,class=1:1,$STREAM,txtime=tai,lead=100000000" &
nap 200
tai -3600
wait
drained c1a
check "CLOCK_TAI set back: what waited then is dropped" between 400 500 "$(class_of drop_txtime_invalid)"
# A frame takes 2304 bytes of the socket's room, which is smaller on machines of 32 bits.
room=$(cat /proc/sys/net/core/rmem_default 2>/dev/null || echo 212992)
check "CLOCK_TAI set back: it is reported, as far as the socket has room" \
	at_least $((room / 2304 - 2)) "$(sent refused)"
check "CLOCK_TAI set back: all else leaves" \
	same 1878 $(($(launched frames) + $(class_of drop_txtime_invalid)))

# Set back by five seconds, they are within the horizon.
fresh hybrid rate 500mbit txtime tai
send 20 "9,class=1:1,$STREAM,txtime=tai,lead=500000000" &
nap 100
tai -5
nap 300
check "CLOCK_TAI set back a little: frames wait" same 94 "$(class_backlog_of c1a 1:1)"
wait

cut_cable c1
finish
