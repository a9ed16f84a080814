#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A class of a slow rate under load becomes a fast one, and the other way round. The host
# reads from the cable's records from when on the new rate counts.
#
#   psp-send --> c1a ==== 1 Gbit/s ==== c1b (sink; two: psp-recv for TCP)

. "$(dirname "$0")/lib.sh"

# edt WORDS...: runs the crate's own test program as a command: apply FILE, show, remove.
edt() {
	EDT="$*" $EDT_PROGRAM >/tmp/edt.out 2>&1 || { cat /tmp/edt.out; return 1; }
	# The test's own name stands before the first line.
	sed -n 's/^\(test edt_bpf_lab::in_guest ... \)\{0,1\}EDT //p' /tmp/edt.out
}

file() {
	cat >/tmp/file <<EOF
[[device]]
name = "c1a"
backend = "edt"
[[device.class]]
name = "load"
rate = "$1"
match = [{ to_port = 5001 }]
[[device.class]]
name = "other"
rate = "1mbit"
match = [{ to_port = 5002 }]
EOF
	edt apply /tmp/file
}

# change FROM TO KIND MS RATE: sends for so long after the change, UDP at a rate in bit/s; prints FROM, TO, and
# when the change began and ended.
change() {
	echo "change of $3 from $1 to $2"
	check "$1" file "$1"
	echo 1 >$WIRE/c1/reset
	now=$(sed -n 's/^now_ns //p' $WIRE/idle)
	if [ "$3" = tcp ]; then
		# Until TCP has found the first rate.
		before_ms=1500
		flow="proto=tcp,to=10.0.0.2:5001"
	else
		# Until a class has a queue.
		before_ms=500
		flow="to=10.0.0.2:5001,payload=1458,rate=$5"
	fi
	psp-send --stop-ns $((now + (before_ms + $4) * 1000000)) --sndbuf 4000000 --flow "$flow" \
		--flow to=10.0.0.2:5002,payload=1458 >/dev/null &
	sender=$!
	nap $before_ms
	from=$(sed -n 's/^now_ns //p' $WIRE/idle)
	check "$2" file "$2"
	to=$(sed -n 's/^now_ns //p' $WIRE/idle)
	wait $sender
	cat $WIRE/c1/timeline.a >"/out/$1-$2-$3.timeline"
	cat $WIRE/c1/flows.a >"/out/$1-$2-$3.flows"
	echo "$1 $2 $3 $from $to" >>/out/changes
	check "fqs are ours" sh -c "$TC qdisc show dev c1a root | grep -q 'fq 7073:'"
}

"$IP" netns add two
cable c1 1000000000 delay_ns=500000 ring=64
ip addr add 10.0.0.1/24 dev c1a
ip link set c1b netns two
"$IP" -n two addr add 10.0.0.2/24 dev c1b
"$IP" -n two link set c1b up
"$IP" netns exec two psp-recv --port 5001 --tcp >/dev/null &
"$IP" netns exec two psp-recv --port 5002 >/dev/null &
while read -r from to kind ms rate; do
	change "$from" "$to" "$kind" "$ms" "$rate"
done </edt/changes
finish
