#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The qdisc of BPF on a stock kernel, without any module of ours but the cable. The host compares
# the cable's records with the core.
#
#   psp-send --> c1a ==== 1 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

# said: prints what the command has said.
said() { sed -n 's/^\(test qdisc_bpf_lab::in_guest ... \)\{0,1\}BPFQ //p' /tmp/bpfq.out; }

# appears FILE: waits for a file of the command's.
appears() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ -e "$1" ] && return 0
		nap 200
	done
	cat /tmp/bpfq.out
	return 1
}

# record NAME: keeps the cable's record.
record() {
	drained c1a
	cat $WIRE/c1/timeline.a >"/out/$1.timeline"
	cat $WIRE/c1/flows.a >"/out/$1.flows"
	echo 1 >$WIRE/c1/reset
}

# stop_at MS: prints the instant so many milliseconds from now.
stop_at() { echo $(($(sed -n 's/^now_ns //p' $WIRE/idle) + $1 * 1000000)); }

cable c1 1000000000 sink=1
ip addr add 10.0.0.1/24 dev c1a
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev c1a

refuse "before it is loaded, nobody knows it" "kind is unknown" \
	tc qdisc add dev c1a root handle 7073: psp_bpf
$BPFQ >/tmp/bpfq.out 2>&1 &
command=$!
check "the kernel takes programs and classes" appears /tmp/loaded
check "the qdisc stands at the device" tc qdisc add dev c1a root handle 7073: psp_bpf
refuse "a device without a port has none" "No such file" \
	tc qdisc add dev c1b root handle 7073: psp_bpf

psp-send --stop-ns "$(stop_at 300)" --sndbuf 400000 \
	--flow to=10.0.0.2:5001,payload=1458,class=7073:8001 \
	--flow to=10.0.0.2:5002,payload=958,class=7073:8002 >/dev/null
record first

# Other rates while packets wait: the clocks go on, and no packet is lost.
psp-send --stop-ns "$(stop_at 400)" --sndbuf 400000 \
	--flow to=10.0.0.2:5001,payload=1458,class=7073:8001 >/dev/null &
sender=$!
nap 100
touch /tmp/change
wait $sender
record changed
# A packet that names no class, with no default, is dropped and counted.
psp-send --stop-ns "$(stop_at 10)" --flow to=10.0.0.2:5003,payload=100,rate=80000 >/dev/null
touch /tmp/count
nap 100
said
check "the configuration was taken once" grep -q "1 images taken" /tmp/bpfq.out
check "packets of no class are counted" grep -q "[1-9][0-9]* of no class, 0 lost" /tmp/bpfq.out
check "none waits and none was dropped" same 2 "$(said | grep -c "bytes, 0 wait, 0 dropped")"

# It goes with packets in it.
psp-send --stop-ns "$(stop_at 100)" --sndbuf 400000 \
	--flow to=10.0.0.2:5001,payload=1458,class=7073:8001 >/dev/null &
sender=$!
nap 50
check "it goes with packets in it" tc qdisc del dev c1a root
wait $sender
touch /tmp/gone
wait $command
check "those are counted" grep -q "left: [1-9]" /tmp/bpfq.out
said
finish
