#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: subscribers come, one changes and all but a few go, under
# traffic to some of them.
#
#   psp-send, a UDP flow to each of some subscribers --> c1a ==== 1 Gbit/s ==== c1b (sink)
#
# usage: traffic.sh FLOW...    as psp-send has them (subscribers_lab.rs)

. /subscribers/lib.sh

driver() {
	SUBSCRIBERS="$*" /subscribers/ld.so --library-path /subscribers /subscribers/test \
		--exact subscribers_lab::in_guest --ignored --nocapture --test-threads 1 >/tmp/said 2>&1 ||
		{ tail -n 40 /tmp/said; return 1; }
	sed -n 's/^.*took: //p' /tmp/said
}

cable c1 1000000000 sink=1 snap=64 ring=256
ip addr add 10.0.0.1/24 dev c1a
ip neigh add 10.0.0.2 lladdr 02:70:73:00:00:02 dev c1a
ip route add 10.1.0.0/16 via 10.0.0.2 dev c1a
driver few
echo 1 >$WIRE/c1/reset
flows=
for flow; do
	flows="$flows --flow $flow"
done
# shellcheck disable=SC2086
psp-send --stop-ns 1000000000000000 --sndbuf 60000 $flows >/out/subscribers.sent &
sender=$!
sleep 0.05
driver all
driver all again
driver one
driver moved
driver few
kill -INT $sender
wait $sender
drained c1a
cat $WIRE/c1/timeline.a >/out/subscribers.timeline
cat $WIRE/c1/snap.a >/out/subscribers.snap
cat $WIRE/c1/counters
