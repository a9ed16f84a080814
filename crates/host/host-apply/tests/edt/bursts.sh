#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What makes the bursts of TCP smaller in a class of 10 Mbit/s by departure times. The host counts the frames
# back to back in the cable's records.
#
#   psp-send --> c1a ==== 1 Gbit/s ==== c1b --> two: psp-recv

. "$(dirname "$0")/lib.sh"

# edt WORDS...: runs the crate's own test program as a command: apply FILE, show, remove.
edt() {
	EDT="$*" $EDT_PROGRAM >/tmp/edt.out 2>&1 || { cat /tmp/edt.out; return 1; }
	# The test's own name stands before the first line.
	sed -n 's/^\(test edt_bpf_lab::in_guest ... \)\{0,1\}EDT //p' /tmp/edt.out
}

# transfer NAME: keeps the record of a second of a transfer, without its beginning.
transfer() {
	now=$(sed -n 's/^now_ns //p' $WIRE/idle)
	psp-send --stop-ns $((now + 2000000000)) --flow proto=tcp,to=10.0.0.2:5001 >/dev/null &
	sender=$!
	nap 900
	echo 1 >$WIRE/c1/reset
	nap 1000
	cat $WIRE/c1/timeline.a >"/out/$1.timeline"
	cat $WIRE/c1/flows.a >"/out/$1.flows"
	wait $sender
	drained c1a
}

ip netns add two
cable c1 1000000000 delay_ns=50000 snap=58 ring=64
ip addr add 10.0.0.1/24 dev c1a
ip link set c1b netns two
"$IP" -n two addr add 10.0.0.2/24 dev c1b
"$IP" -n two link set c1b up
"$IP" netns exec two psp-recv --port 5001 --tcp >/dev/null &
receiver=$!
cat >/tmp/file <<EOF
[[device]]
name = "c1a"
backend = "edt"
default = "all"
[[device.class]]
name = "all"
rate = "10mbit"
EOF
check "the file is applied" edt apply /tmp/file
transfer plain
check "ethtool -K c1a tso off gso off" /edt/offload c1a 0
transfer ethtool
check "ethtool -K c1a tso on gso on" /edt/offload c1a 1
check "gso_max_size" ip link set c1a gso_max_size 8000
transfer size
check "gso_max_size" ip link set c1a gso_max_size 65536
check "gso_max_segs" ip link set c1a gso_max_segs 2
transfer segs
check "gso_max_segs" ip link set c1a gso_max_segs 65535
log=$(cat /proc/sys/net/ipv4/tcp_tso_rtt_log)
echo 0 >/proc/sys/net/ipv4/tcp_tso_rtt_log
transfer log
echo "$log" >/proc/sys/net/ipv4/tcp_tso_rtt_log
kill -TERM $receiver
finish
