#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: 64 AES67 streams beside bulk TCP through qdiscs, while interrupts are
# held up. Keeps of each what the cable recorded, as /out/NAME.timeline and /out/NAME.snap.
#
#   one: send-stream, psp-send -> c1a ==== 500 Mbit/s, 90 % busy ==== c1b -> two: psp-recv
#
# A stereo packet of 4 ms takes 1230 bytes of the wire: 64 streams are 157 Mbit/s, TCP is paced to 285.
# Nobody receives the audio: its hardware address is of no one.

. /media/lib.sh

# CLOCK_TAI is so far ahead of CLOCK_MONOTONIC, of the cable.
cat /proc/timer_list >/out/timer_list

pspacer() { ip netns exec one /media/ld.so --library-path /media /media/pspacer "$@"; }

ip netns add one
ip netns add two
ip netns exec two psp-recv --tcp --port 6000 >/dev/null &

# fresh NAME: a new cable with the qdisc of that name on c1a. On a busy host psp needs frames in the
# driver for longer than interrupts are held up; the others are better off with the kernel's own limit.
fresh() {
	case $1 in
	psp-*) limit=bql_min=65536 ;;
	*) limit= ;;
	esac
	[ -e $WIRE/c1 ] && cut_cable c1
	echo "name=c1 a=c1a b=c1b rate_bps=500000000 snap=64 delay_ns=100000 $limit" >$WIRE/create
	two_hosts c1 10.9.0
	ip -n one neigh add 10.9.0.3 lladdr 02:00:00:00:00:33 dev c1a
	case $1 in
	psp-*)
		case $1 in *-guard) guard=on ;; *) guard=off ;; esac
		mode=${1#psp-}
		tc -n one qdisc add dev c1a root handle 1: psp mode "${mode%-guard}" guard $guard default 2
		tc -n one class add dev c1a parent 1: classid 1:1 psp rate 200mbit txtime tai
		tc -n one class add dev c1a parent 1: classid 1:2 psp mode normal
		tc -n one filter add dev c1a parent 1: protocol ip pref 1 u32 \
			match ip protocol 17 0xff classid 1:1
		;;
	prio-etf-*)
		tc -n one qdisc add dev c1a root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
		delta=${1#prio-etf-}
		tc -n one qdisc add dev c1a parent 1:1 etf clockid CLOCK_TAI delta "${delta%-cake}"
		# cake cuts TCP's bursts into frames.
		case $1 in
		*-cake) tc -n one qdisc add dev c1a parent 1:2 cake unlimited besteffort split-gso ;;
		*) tc -n one qdisc add dev c1a parent 1:2 pfifo limit 1000 ;;
		esac
		tc -n one filter add dev c1a parent 1: protocol ip pref 1 u32 \
			match ip protocol 17 0xff classid 1:1
		;;
	fq) tc -n one qdisc add dev c1a root fq timer_slack 1 limit 20000 flow_limit 20000 ;;
	pfifo) tc -n one qdisc add dev c1a root pfifo limit 1000 ;;
	esac
}

# how NAME: the options of send-stream for it.
how() {
	case $1 in
	fq) echo "--by so-txtime --clock monotonic" ;;
	pfifo) echo "--by none" ;;
	*) echo "--by so-txtime" ;;
	esac
}

for noise in 0 60; do
	echo "hold_max_ns=${noise}000 every_ns=500000 seed=3" >$WIRE/noise
	for name in $QDISCS; do
		fresh "$name"
		ip netns exec one psp-send --epoch-ns "$(now_ns)" --start-ns 20000000 --stop-ns 900000000 \
			--flow "to=10.9.0.2:6000,proto=tcp,name=bulk,window=4000000,pacing=285000000" >"/out/$name,$noise.tcp" &
		bulk=$!
		# TCP has found its rate.
		sleep 0.2
		echo 1 >$WIRE/c1/reset
		# shellcheck disable=SC2046
		pspacer send-stream 10.9.0.3:5004 --audio 2 --ptime 4ms --streams 64 $(how "$name") --lead 5ms \
			--for 450ms --json >"/out/$name,$noise.sent"
		cat $WIRE/c1/timeline.a >"/out/$name,$noise.timeline"
		cat $WIRE/c1/snap.a >"/out/$name,$noise.snap"
		wait $bulk
	done
done
