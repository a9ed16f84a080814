#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Launch times beside another paced class that already sends, in mode gap: txtime.sh has them
# alone.
#
#   psp-send -> c1a (psp) ==== 1 Gbit/s ==== c1b (sink)
#
# The cable records when each frame left; psp-launched compares that with the launch
# time in the frame.
#
# Never early by more than half a smallest gap. Late by the frame on the wire at most; where rates
# and launch times fill the line, by one more that was due before. Where the host was held for longer
# than the byte queue limit lasts, the wire was silent meanwhile: a frame is late by the longest silence,
# wire_stop_max, more. With the kernel's own limit that is so while an interrupt is held up, also for less than
# is counted as a silence, and when a stream begins; half of the frames are as punctual as ever.
#
# NOISES, LIMITS, LOADS, WHENS, GUARDS: what to try of each; by default what is below.

. "$(dirname "$0")/lib.sh"

SNAP=64
# A frame of 1242 bytes each 213 us, no multiple of anything that psp counts in.
STREAM="payload=1200,rate=46647887"
# Half a gap frame of 84 bytes, and the byte to which psp rounds an instant.
HALF_GAP=344
# The longest frame of the line.
FRAME=12304
# The wire is dry for so long while the kernel's own byte queue limit is small.
DRY=3000
LEAD=2900000

# beside LOAD_BPS WHEN GUARD: the launch stream lasts from 70 to 170 ms; the other class sends at
# LOAD_BPS, a little less than its rate, from 40 ms before (WHEN is before), with the stream or
# from its middle (after).
beside() {
	tc qdisc del dev c1a root 2>/dev/null || :
	tc qdisc add dev c1a root handle 1: psp mode gap default 3 guard "$3"
	tc class add dev c1a parent 1: classid 1:1 psp rate 100mbit txtime monotonic
	tc class add dev c1a parent 1: classid 1:2 psp rate "$(($1 + $1 / 20))"
	tc class add dev c1a parent 1: classid 1:3 psp mode normal
	echo 1 >$WIRE/c1/reset
	case $2 in
	before) other_start=30000000 ;;
	with) other_start=70000000 ;;
	after) other_start=120000000 ;;
	esac
	epoch=$(now_ns)
	psp-send --epoch-ns "$epoch" --start-ns $other_start --stop-ns 170000000 --sndbuf 4000000 \
		--flow "to=10.9.0.2:10,class=1:2,rate=$1" >/tmp/other &
	psp-send --epoch-ns "$epoch" --start-ns 70000000 --stop-ns 170000000 --sndbuf 4000000 \
		--flow "to=10.9.0.2:9,class=1:1,$STREAM,txtime=monotonic,lead=$LEAD" >/tmp/sent
	wait
	drained c1a
}

errors() { psp-launched $WIRE/c1/timeline.a $WIRE/c1/snap.a 9 $SNAP; }
launched() {
	errors | tr ',{}' '\n\n\n' | sed -n "s/^\"$1\"://p"
}

for limit in ${LIMITS:-65536 default}; do
	case $limit in
	default) cable c1 1000000000 sink=1 snap=$SNAP ;;
	*) cable c1 1000000000 sink=1 snap=$SNAP bql_min="$limit" ;;
	esac
	ip addr add 10.9.0.1/24 dev c1a
	ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev c1a
	for noise in ${NOISES:-$(choose 60000 "0 60000")}; do
		echo "hold_max_ns=$noise every_ns=500000 seed=3" >$WIRE/noise
		for load in ${LOADS:-$(choose "140000000 850000000" "50000000 140000000 500000000 850000000")}; do
			for when in ${WHENS:-$(choose "before after" "before with after")}; do
				for guard in ${GUARDS:-off on}; do
					[ "$guard-$when" = on-before ] || [ "$guard" = off ] || continue
					what="limit_min $limit, noise $noise ns, $load bit/s $when, guard $guard"
					late=$((FRAME + HALF_GAP))
					[ "$load" -lt 800000000 ] || late=$((late + FRAME))
					# A silence that is no longer than a frame is not counted.
					[ "$limit" = 65536 ] || late=$((late + DRY + FRAME))
					beside "$load" "$when" "$guard"
					silent=$(tc -s -j qdisc show dev c1a root | json_of wire_stop_max_ns)
					echo "# $what: silent for at most $silent ns, $(errors)"
					# A silence is not counted while the device may still have had frames.
					[ "$limit" = 65536 ] || [ "$silent" -ge "$noise" ] || silent=$noise
					check "$what: every frame leaves" same "$(sent datagrams) 0 0" \
						"$(launched frames) $(sent missed) $(sent refused)"
					check "$what: none is half a gap early" \
						at_least -$HALF_GAP "$(launched least_ns)"
					check "$what: late by at most $late ns and the silence" \
						at_most $((late + silent)) "$(launched most_ns)"
					[ "$limit" = 65536 ] || check "$what: half are late by at most $((late - FRAME)) ns" \
						at_most $((late - FRAME)) "$(launched p50_ns)"
				done
			done
		done
	done
	echo "hold_max_ns=0" >$WIRE/noise
	cut_cable c1
done
finish
