#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Classes of type dynamic: psp finds flows by their sockets, gives each its own rate,
# and removes them when they are idle. No frame is lost without being counted.
#
#   one: psp-send -> c1a (psp) ==== 1 Gbit/s ==== c1b -> two: psp-recv
#                        RTT 20 ms; a bottleneck in the tests that name one

. "$(dirname "$0")/lib.sh"

# Link-layer bytes of a full TCP packet, and its payload with timestamps.
PACKET=1514
MSS=1448

ip netns add one
ip netns add two
cable c1 1000000000 records_max=0
path() { echo "end=a delay_ns=10000000 $*" >$WIRE/c1/bottleneck; }
path
echo "end=b delay_ns=10000000" >$WIRE/c1/bottleneck
two_hosts c1 10.1.0
# The program, not the function ip: $! would otherwise be a shell.
"$IP" netns exec two psp-recv --port 7 --tcp >/dev/null 2>&1 &
receivers=$!
"$IP" netns exec two psp-recv --port 100 >/dev/null 2>&1 &
receivers="$receivers $!"
ulimit -n 4096

# send MILLISECONDS SPEC...: runs psp-send, with its report in /tmp/sent.
send() {
	stop_ns=$(($1 * SLOW * 1000000))
	shift
	flows=
	for spec in "$@"; do flows="$flows --flow $spec"; done
	# shellcheck disable=SC2086 # one word a flow
	ip netns exec one psp-send --epoch-ns "$(now_ns)" --stop-ns $stop_ns \
		$flows >/tmp/sent 2>&1
}

port() { tc -n one qdisc add dev c1a root handle 1: psp default 1 "$@"; }
add() { tc -n one class add dev c1a parent 1: classid 1:1 psp "$@"; }
change() { tc -n one class change dev c1a parent 1: classid 1:1 psp "$@"; }

# about EXPECTED ACTUAL: succeeds if they differ by at most 5 %.
about() { between $(($1 * 95 / 100)) $(($1 * 105 / 100)) "$2"; }

# --- the formula -----------------------------------------------------------

# formula EIGHTHS: prints so many eighths of packet size x cwnd / RTT, by the socket's
# last values.
formula() {
	echo $(($1 * PACKET * $(sent cwnd_segments) * 1000000 /
		$(sent srtt_us)))
}

port
check "a dynamic class" add mode dynamic
check "a dynamic class has room for 16384 flows" same 16384 "$(got flows)"
path rate_bps=20000000 fifo_bytes=40000
send 3000 proto=tcp,to=10.1.0.2:7,congestion=cubic
timely "TCP lost packets" at_least 1 "$(sent retrans_segments)"
check "the flow's rate is 9/8 of packet size x cwnd / RTT" \
	about "$(formula 9)" "$(got flow_rate_max)"
check "one flow was seen" same 1 "$(got flows_seen)"
check "psp dropped no packet" same 0 "$(got dropped)"
check "the queue is empty" settled
path
send 500 proto=tcp,to=10.1.0.2:7,congestion=cubic,window=100000
timely "in slow start the window counts twice" \
	about "$(formula 16)" "$(got flow_rate_max)"
check "two flows were seen" same 2 "$(got flows_seen)"

# --- what the socket, and the class, allow at most -------------------------

tc -n one qdisc del dev c1a root
modes=$(choose hybrid "gap timer hybrid")
# A limit of flows, and twice as many sockets.
many=$(choose 200 1000)
echo "# SO_MAX_PACING_RATE in modes: $modes; $many flows of $((2 * many)) sockets"
for mode in $modes; do
	port mode $mode
	add mode dynamic
	send 600 proto=tcp,to=10.1.0.2:7,congestion=cubic,pacing=10000000
	# SO_MAX_PACING_RATE of TCP counts payload.
	timely "$mode: SO_MAX_PACING_RATE of TCP is the flow's rate" \
		same $((10000000 * PACKET / MSS)) "$(got flow_rate_max)"
	timely "$mode: TCP sends at SO_MAX_PACING_RATE" \
		between 600000 750000 "$(sent bytes)"
	send 600 to=10.1.0.2:100,pacing=10000000
	timely "$mode: SO_MAX_PACING_RATE of UDP is the flow's rate" \
		same 10000000 "$(got flow_rate_min)"
	check "$mode: the queue is empty" settled
	tc -n one qdisc del dev c1a root
done

port
add mode dynamic ceil 5mbit
send 300 proto=tcp,to=10.1.0.2:7,congestion=cubic
check "no flow is faster than the ceil" same 5000000 "$(got flow_rate_max)"
change mode dynamic ceil 3mbit
check "a lowered ceil lowers the rate of known flows" same 3000000 "$(got flow_rate_max)"
check "the lowered ceil is in force" same 3000000 "$(got ceil_in_force)"
tc -n one qdisc change dev c1a root handle 1: psp line 2mbit 2>/tmp/why || :
check "a line below the ceil is refused" grep -q "1:1.s 3000000bit or more" /tmp/why
tc -n one qdisc del dev c1a root

port
add mode dynamic
send 300 to=10.1.0.2:100,pacing=50000000,rate=1000000
check "a line below a flow's rate" \
	tc -n one qdisc change dev c1a root handle 1: psp line 20mbit
check "no flow is faster than the lowered line" same 20000000 "$(got flow_rate_max)"
check "MTU 9000 with flows" ip -n one link set c1a mtu 9000
check "MTU 1500 with flows" ip -n one link set c1a mtu 1500
tc -n one qdisc del dev c1a root

# --- more than the line: shares by rate ------------------------------------

# Timer mode accepts any line rate.
port line 45mbit mode timer
add mode dynamic
"$IP" netns exec two psp-recv --port 101 --count 2 >/tmp/received 2>&1 &
receiver=$!
send 1000 to=10.1.0.2:101,pacing=20000000 to=10.1.0.2:102,pacing=40000000
check "two flows above the line are sent" settled
sleep 0.1
kill $receiver
wait $receiver || :
received() { sed -n "s/.*\"port\":$1,\"received\":\([0-9]*\).*/\1/p" /tmp/received; }
# psp also sends what each flow had queued at the end, up to 100 frames.
timely "two flows above the line share it by their rates" \
	between 160 230 $((100 * $(received 102) / $(received 101)))
tc -n one qdisc del dev c1a root

# --- frames without a flow --------------------------------------------------

port
add mode dynamic rate 10mbit
check "rate in force of what has no flow" same 10000000 "$(got rate_in_force)"
send 300 to=10.1.0.2:100,rate=5000000
check "UDP without SO_MAX_PACING_RATE is no flow" same "" "$(got flows_seen)"
check "UDP without SO_MAX_PACING_RATE is sent" at_least 100 "$(got sent_frames)"
check "UDP without SO_MAX_PACING_RATE leaves the queue empty" settled

# --- many flows come and go --------------------------------------------------

change mode dynamic rate 1gbit flows $many
i=0
while [ $i -lt $((2 * many)) ]; do
	echo "to=10.1.0.2:100,payload=100,rate=$((50000 / SLOW / SLOW)),pacing=100000"
	i=$((i + 1))
done >/tmp/flows
ip netns exec one psp-send --epoch-ns "$(now_ns)" --stop-ns $((SLOW * SLOW * 300000000)) \
	--flows /tmp/flows >/tmp/sent 2>&1
check "$((2 * many)) sockets sent" same $((2 * many)) "$(grep -c '"datagrams":[1-9]' /tmp/sent)"
timely "$many of $((2 * many)) sockets have flows" same "$many" "$(got flows_known)"
timely "each flow has 100 kbit/s" same $((many * 100000)) "$(got flow_rate_sum)"
timely "frames of sockets without a flow are counted" at_least "$many" "$(got flows_refused)"
check "every frame of $((2 * many)) sockets is sent" settled
check "no frame of $((2 * many)) sockets is dropped" same 0 "$(got dropped)"
check "the limit of flows is raised" change mode dynamic flows 5000
timely "a raised limit keeps the known flows" same "$many" "$(got flows_known)"
check "the limit of flows is lowered" change mode dynamic flows 10
timely "a lowered limit keeps the known flows" \
	same "$many" "$(got flows_known)"
sleep 3.2
check "known flows go after three idle seconds" same 0 "$(got flows_known)"
send 100 to=10.1.0.2:100,pacing=1000000,rate=100000
check "a new flow comes after the idle ones went" same 1 "$(got flows_known)"

# --- reset, change and delete under traffic ----------------------------------

slow="to=10.1.0.2:100,pacing=1000000"
send 5000 "$slow" "$slow" "$slow" "proto=tcp,to=10.1.0.2:7,congestion=cubic" &
sender=$!
nap 300
check "frames wait in flows" at_least 100 "$(got frames)"
check "three or more flows are active" at_least 3 "$(got flows_active)"
refuse "another type is refused while flows have frames" 'flows have frames, expected none' \
	change mode paced rate 10mbit
check "the refused change leaves the options as they were" same 10 "$(got flows)"
# The far end goes down, so the near end keeps its route.
ip -n two link set c1b down
nap 1000
check "carrier lost: the queue is empty" settled
check "carrier lost: no flow is known" same 0 "$(got flows_known)"
ip -n two link set c1b up
nap 1000
check "carrier back: frames wait again" at_least 10 "$(got frames)"
check "the class is deleted while frames wait" \
	tc -n one class del dev c1a classid 1:1
add mode dynamic
nap 200
timely "a new class sends after it" at_least 10 "$(got frames)"
check "the qdisc is deleted while frames wait" tc -n one qdisc del dev c1a root
port
add mode dynamic
wait $sender || :
check "a new qdisc sends the rest" settled
check "the class becomes paced once its queue is empty" change mode paced rate 50mbit
check "a paced class has no flows" same "" "$(got flows)"
send 200 "$slow"
check "the paced class sends" at_least 1 "$(got sent_frames)"
check "the paced class's queue is empty" settled
check "the class becomes dynamic again" change mode dynamic
send 200 "$slow"
check "the dynamic class has flows again" same 1 "$(got flows_known)"
check "the dynamic class's queue is empty" settled

# --- one flow has a bounded queue ---------------------------------------------

change mode dynamic horizon 600s
ip netns exec one psp-send --epoch-ns "$(now_ns)" --stop-ns $((SLOW * 600000000)) \
	--sndbuf 100000000 --flow to=10.1.0.2:100,pacing=100000 >/tmp/sent 2>&1
# Some frames have been sent since.
check "a flow holds 4096 frames" between 4050 4096 "$(got frames)"
check "frames beyond flow-limit are dropped and counted" at_least 1 "$(got drop_flow)"
check "the qdisc counts the same frames beyond flow-limit" same "$(got drop_flow)" "$(qdisc_got drop_flow)"
check "the class with 4096 frames is deleted" \
	tc -n one class del dev c1a classid 1:1
check "the qdisc holds no frame of the deleted class" same 0 "$(qdisc_got qlen)"
tc -n one qdisc del dev c1a root

# --- rates below what a clock can keep -----------------------------------------

# With bursts of 64 KB and the headers of each frame the least rate that a clock can
# keep is 2458 bit/s.
port line 1gbit mode timer split-gso off
add mode dynamic
send 300 to=10.1.0.2:100,pacing=1000,rate=1000000
check "the slow flow's rate is the least that a clock keeps" \
	between 2400 2500 "$(got flow_rate_min)"
check "a slow flow does not forbid a faster line" \
	tc -n one qdisc change dev c1a root handle 1: psp line 400gbit
check "a slow flow does not forbid MTU 9000" ip -n one link set c1a mtu 9000
check "a slow flow does not forbid MTU 1500" ip -n one link set c1a mtu 1500
send 300 to=10.1.0.2:100,pacing=1000,rate=1000000
check "a new slow flow is not refused" same 0 "$(got flows_refused)"
check "the new slow flow's rate is the least that a clock keeps" between 2400 2500 "$(got flow_rate_max)"
tc -n one qdisc del dev c1a root

# --- a flow stays until its clock is reached -------------------------------------

# 1514 bytes at 2400 bit/s take 5.05 s a frame. The socket offers one every 3.1 s.
port
add mode dynamic
"$IP" netns exec two psp-recv --port 103 >/tmp/received 2>&1 &
receiver=$!
send 13500 to=10.1.0.2:103,pacing=2400,rate=3907
sleep 0.1
kill $receiver
wait $receiver || :
check "a frame was offered every 3.1 s" same $((13500 * SLOW / 3100 + 1)) "$(sent datagrams)"
timely "a flow with a frame every five seconds sends two or three in 13.5 s" between 2 3 "$(received 103)"
tc -n one qdisc del dev c1a root

# --- a lower limit of flows frees ids ------------------------------------------

port
i=1
while [ $i -le 3 ]; do
	tc -n one class add dev c1a parent 1: classid 1:$i psp mode dynamic flows 65536
	tc -n one class change dev c1a parent 1: classid 1:$i psp mode dynamic flows 10
	i=$((i + 1))
done
check "ids of flows no longer allowed are free" \
	tc -n one class add dev c1a parent 1: classid 1:f0 psp mode dynamic flows 65536
tc -n one qdisc del dev c1a root

port
# --- rejected options -------------------------------------------------------------

refuse "flows 0" 'flows "0"' add mode dynamic flows 0
refuse "too many flows" 'flows 65537: expected 1 to 65536' \
	add mode dynamic flows 65537
refuse "floor above the ceil" "floor 2000bit: expected at most the ceil" \
	add mode dynamic floor 2kbit ceil 1kbit
refuse "ceil above the line" 'ceil 2000000000bit: expected' \
	add mode dynamic ceil 2gbit
refuse "ceil below the rate" 'ceil 1000000bit: expected at least the rate.s 2000000bit' \
	add mode dynamic rate 2mbit ceil 1mbit
refuse "quantum of a dynamic class" 'quantum: expected only with mode normal' \
	add mode dynamic quantum 1500
i=1
while [ $i -le 3 ]; do
	tc -n one class add dev c1a parent 1: classid 1:$i psp mode dynamic flows 65536
	i=$((i + 1))
done
refuse "more flows than a port may have" 'expected at most 262144' \
	tc -n one class add dev c1a parent 1: classid 1:f0 psp mode dynamic flows 65536
tc -n one qdisc del dev c1a root

# shellcheck disable=SC2086 # two numbers
kill $receivers
ip netns del one
ip netns del two
cut_cable c1
finish
