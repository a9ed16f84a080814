#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: streams of "pspacer send-stream" through qdiscs, while interrupts are
# held up. Keeps of each what the cable recorded, as /out/NAME.timeline and /out/NAME.snap.
#
#   send-stream -> c1a ==== 1 Gbit/s ==== c1b (sink)

. /media/lib.sh

pspacer() { /media/ld.so --library-path /media /media/pspacer "$@"; }

cable c1 1000000000 sink=1 snap=64 bql_min=262144
ip addr add 10.9.0.1/24 dev c1a
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev c1a

# qdisc NAME: the qdisc of that name, on c1a.
qdisc() {
	tc qdisc del dev c1a root 2>/dev/null || :
	case $1 in
	psp-*)
		tc qdisc add dev c1a root handle 1: psp mode "${1#psp-}" default 1
		tc class add dev c1a parent 1: classid 1:1 psp rate 500mbit txtime tai
		;;
	etf-2.4us) tc qdisc add dev c1a root etf clockid CLOCK_TAI delta 2400 ;;
	etf-800us) tc qdisc add dev c1a root etf clockid CLOCK_TAI delta 800000 ;;
	fq*) tc qdisc add dev c1a root fq timer_slack 1 limit 20000 flow_limit 20000 ;;
	pfifo) tc qdisc add dev c1a root pfifo limit 20000 ;;
	esac
}

# how NAME: the options of send-stream for it.
how() {
	case $1 in
	fq-rate) echo "--by so-max-pacing-rate" ;;
	fq) echo "--by so-txtime --clock monotonic" ;;
	pfifo) echo "--by none" ;;
	*) echo "--by so-txtime" ;;
	esac
}

# CLOCK_TAI is so far ahead of CLOCK_MONOTONIC, of the cable.
cat /proc/timer_list >/out/timer_list

for noise in 0 200 600; do
	echo "hold_max_ns=${noise}000 every_ns=5000000 seed=3" >$WIRE/noise
	for name in $QDISCS; do
		for video in $VIDEOS; do
			qdisc "$name"
			echo 1 >$WIRE/c1/reset
			# shellcheck disable=SC2046
			pspacer send-stream 10.9.0.2:5004 --video "$video" $(how "$name") --lead 5ms --for 400ms --json \
				>"/out/$name,$noise,$video.sent"
			drained c1a
			cat $WIRE/c1/timeline.a >"/out/$name,$noise,$video.timeline"
			cat $WIRE/c1/snap.a >"/out/$name,$noise,$video.snap"
		done
	done
done
