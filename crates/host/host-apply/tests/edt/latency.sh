#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Measures the wait of a probe behind TCP flows of the same class.  Each line of
# /edt/cells asks for a cell, and adds a line to /out/cells.
#
#   own:                 psp-send --> c1a ==== 1 Gbit/s ==== c1b --> two: psp-recv
#   routed:  src: psp-send --> veth --> c1a ==== 1 Gbit/s ==== c1b --> two: psp-recv

. "$(dirname "$0")/lib.sh"

# edt WORDS...: runs the crate's own test program as a command: apply FILE, show, remove.
edt() {
	EDT="$*" $EDT_PROGRAM >/tmp/edt.out 2>&1 || { cat /tmp/edt.out; return 1; }
	sed -n 's/^\(test edt_bpf_lab::in_guest ... \)\{0,1\}EDT //p' /tmp/edt.out
}

now_ns() {
	sed -n 's/^now_ns //p' $WIRE/idle
}

sent_bytes() {
	sed -n 's/^a.data_bytes //p' $WIRE/c1/counters
}

# in_ns NAME COMMAND...: runs a command in a namespace.
in_ns() {
	space=$1
	shift
	"$IP" netns exec "$space" "$@"
}

# lay RTT-US: makes the cable, and a namespace with a sender whose packets are forwarded.
lay() {
	cut_cable c1 2>/dev/null || :
	cable c1 1000000000 delay_ns=$(($1 * 500)) snap=58 ring=64
	ip link set c1b netns two
	ip addr add 10.0.0.1/24 dev c1a
	in_ns two "$IP" addr add 10.0.0.2/24 dev c1b
	in_ns two "$IP" link set c1b up
	in_ns two "$IP" route add 10.1.0.0/24 via 10.0.0.1
}

# shape SHAPER MBIT: one class for all packets.
shape() {
	edt remove >/dev/null
	tc qdisc del dev c1a root 2>/dev/null || :
	case $1 in
	psp*)
		tc qdisc add dev c1a root handle 1: psp default 1 mode timer
		# psp, psp:DEADLINE or psp-codel
		deadline=$(echo "$1" | sed -n 's/^psp:/deadline /p')
		# shellcheck disable=SC2086
		tc class add dev c1a parent 1: classid 1:1 psp rate "$2mbit" $deadline
		[ "$1" != psp-codel ] || tc qdisc add dev c1a parent 1:1 fq_codel
		;;
	*)
		without=none
		[ "${1%%:*}" != edt ] || without=mode
		echo '[[device]]
name = "c1a"
default = "all"
mode = "timer"' | grep -v "$without" >/tmp/file
		echo "backend = \"${1%%:*}\"" >>/tmp/file
		echo '
[[device.class]]
name = "all"' >>/tmp/file
		echo "rate = \"$2mbit\"" >>/tmp/file
		# A backend by its default, or edt:DEADLINE:MARK
		echo "$1" | sed -n 's/^edt:\(.*\):\(.*\)/deadline = "\1"\nmark = "\2"/p' >>/tmp/file
		edt apply /tmp/file >/dev/null
		;;
	esac
}

# cell SHAPER MBIT RTT-US ECN FROM CONGESTION FLOWS WARM-MS MEASURE-MS
cell() {
	[ "$3" = "$laid" ] || lay "$3"
	laid=$3
	shape "$1" "$2"
	sender=
	[ "$5" = own ] || sender="$IP netns exec src"
	for at in "" "$IP netns exec src" "$IP netns exec two"; do
		$at sh -c "echo $4 >/proc/sys/net/ipv4/tcp_ecn
			echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save"
	done
	"$IP" netns exec two psp-recv --port 5001 --tcp >/tmp/received &
	receiver=$!
	"$IP" netns exec two psp-recv --port 6001 >/dev/null &
	probed=$!
	# One connection each two ms: as many at once are more than a listener takes.
	begin_ns=$(($(now_ns) + 100000000))
	for number in $(seq "$7"); do
		echo "proto=tcp,to=10.0.0.2:5001,congestion=$6,start=$((begin_ns + number * 2000000))"
	done >/tmp/flows
	# A frame of 58 bytes each 10 ms.
	echo "to=10.0.0.2:6001,payload=16,rate=46400" >>/tmp/flows
	$sender psp-send --stop-ns $(($(now_ns) + ($8 + $9) * 1000000)) --flows /tmp/flows >/tmp/sent &
	sending=$!
	nap "$8"
	echo 1 >$WIRE/c1/reset
	from_ns=$(now_ns)
	nap $(($9 - 20))
	bytes=$(sent_bytes)
	to_ns=$(now_ns)
	cat $WIRE/c1/timeline.a >/tmp/timeline
	cat $WIRE/c1/snap.a >/tmp/snap
	wait $sending || :
	counted=$(edt show | awk '{ print $4, $5 }')
	kill -TERM $receiver $probed
	wait $receiver $probed || :
	tc qdisc del dev c1a root 2>/dev/null || :
	retransmitted=$(sed -n 's/.*"retrans_segments":\([0-9]*\).*/\1/p' /tmp/sent |
		awk '{ n += $1 } END { print n + 0 }')
	segments=$(sed -n 's/.*"segments":\([0-9]*\),"retrans.*/\1/p' /tmp/sent |
		awk '{ n += $1 } END { print n + 0 }')
	waits=$(psp-launched /tmp/timeline /tmp/snap 6001 58 | tr -d '{}"')
	echo "$* | $(((to_ns - from_ns) / 1000)) $bytes $segments $retransmitted ${counted:-0 0} $waits"
}

ip netns add two
ip netns add src
ip link add s0 netns src type veth peer name s1
in_ns src "$IP" addr add 10.1.0.1/24 dev s0
in_ns src "$IP" link set s0 up
in_ns src "$IP" route add default via 10.1.0.254
ip addr add 10.1.0.254/24 dev s1
ip link set s1 up
echo 1 >/proc/sys/net/ipv4/ip_forward
# What does not fit the receiver's window is no matter of the class.
in_ns two sh -c 'echo "4096 1000000 64000000" >/proc/sys/net/ipv4/tcp_rmem'
for at in two src; do
	in_ns $at sh -c 'echo "4096 65536 64000000" >/proc/sys/net/ipv4/tcp_wmem'
done
echo "4096 65536 64000000" >/proc/sys/net/ipv4/tcp_wmem

laid=
while read -r line; do
	# shellcheck disable=SC2086
	cell $line </dev/null >>/out/cells
	tail -n 1 /out/cells
done </edt/cells
check "all cells were measured" same "$(wc -l </edt/cells)" "$(wc -l </out/cells)"
finish
