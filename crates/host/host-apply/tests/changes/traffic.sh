#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: the file of a host changes at random under paced traffic, then the
# same traffic runs for as long without changes.
#
#   psp-send, seven UDP flows --> c1a ==== 200 Mbit/s ==== c1b (sink)
#
# usage: traffic.sh COUNT KINDS BACKEND    so many changes, of these kinds (changes_lab.rs)

. /changes/lib.sh

backend=$3

# driver WORDS: does in the guest what tests/changes_lab.rs says.
driver() {
	CHANGES="$*" CHANGES_BACKEND=$backend /changes/ld.so --library-path /changes /changes/test \
		--exact changes_lab::in_guest --ignored --nocapture --test-threads 1 >/tmp/said 2>&1 ||
		{ cat /tmp/said; return 1; }
}
# tables: prints everything that is set up on the device, without what frames have counted. The order
# of classes is that of a hash table, which has grown meanwhile. Without the module only `save` tells.
tables() {
	tc qdisc show dev c1a
	tc class show dev c1a | sort
	tc filter show dev c1a parent 7073: 2>/dev/null || true
}
# traffic NAME COMMAND...: sends while the command runs; keeps the cable's record.
# Of 5001 to 5004 there is always more to send than their classes may.
traffic() {
	name=$1
	shift
	echo 1 >$WIRE/c1/reset
	psp-send --stop-ns 1000000000000000 --sndbuf 60000 \
		--flow to=10.0.0.2:5001,payload=1000,rate=max --flow to=10.0.0.2:5002,payload=1000,rate=max \
		--flow to=10.0.0.2:5003,payload=1000,rate=max --flow to=10.0.0.2:5004,payload=1000,rate=max \
		--flow to=10.0.0.2:5005,payload=1000,rate=2000000 \
		--flow to=10.0.0.2:5006,payload=1000,rate=2000000 \
		--flow to=10.0.0.2:5007,payload=1000,rate=2000000 >"/out/$name.sent" &
	sender=$!
	sleep 0.05
	"$@"
	kill -INT $sender
	wait $sender
	drained c1a
	cat $WIRE/c1/timeline.a >"/out/$name.timeline"
	cat $WIRE/c1/snap.a >"/out/$name.snap"
	tc -s qdisc show dev c1a
	tc -s class show dev c1a
	cat $WIRE/c1/counters
}

cable c1 200000000 sink=1 snap=64 ring=256
ip addr add 10.0.0.1/24 dev c1a
ip neigh add 10.0.0.2 lladdr 02:70:73:00:00:02 dev c1a
driver first
driver save
tables >/tmp/before
traffic changes driver random "$1" "$2"
driver restore
tables >/tmp/after
diff /tmp/before /tmp/after
driver save again
cmp /tmp/saved /tmp/saved-again
traffic control sleep "$(cat /tmp/took)"
