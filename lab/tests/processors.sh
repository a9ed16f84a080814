#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# processors.sh CPUS SECONDS SHAPER...: frames a second through a qdisc, sent by 1, 2, 4, ...
# up to CPUS processors at once. Each has a thread of pktgen, and a queue of the device (XPS).
# Then how often one of them had to wait for a spinlock. The wire is 1 Tbit/s, and all rates
# are higher than what processors can send. Runs in a guest; prints a line for each:
# SHAPER SENDERS FRAMES NS DROPS CONTENDED FRAMES-MEANWHILE
WIRE=/sys/kernel/debug/wire
TRACE=/sys/kernel/debug/tracing
PKTGEN=/proc/net/pktgen
rate=100gbit
cpus=$1
seconds=$2
shift 2

fail() {
	echo "processors: $*" >&2
	exit 1
}

counter() {
	sed -n "s/^a.data_frames //p" $WIRE/p/counters
}

now() {
	sed -n "s/^now_ns //p" $WIRE/idle
}

drops() {
	tc -s qdisc show dev pa | sed -n 's/.*dropped \([0-9]*\),.*/\1/p' | head -n 1
}

contended() {
	sed -n 's/^ *contended *\([0-9]*\) .*/\1/p' $TRACE/kprobe_profile
}

each_queue() {
	tc qdisc replace dev pa root handle a: mq || return
	q=1
	while [ $q -le "$cpus" ]; do
		"$1" "a:$q" $((q + 10)) || return
		q=$((q + 1))
	done
}

psp() {
	tc qdisc replace dev pa parent "$1" handle "$2:" psp default 1 mode timer &&
		tc class add dev pa parent "$2:" classid "$2:1" psp rate $rate
}

shared() {
	tc qdisc replace dev pa parent "$1" handle "$2:" psp shared on default 1 &&
		tc class add dev pa parent "$2:" classid "$2:1" psp rate $rate
}

htb() {
	tc qdisc replace dev pa parent "$1" handle "$2:" htb default 1 &&
		tc class add dev pa parent "$2:" classid "$2:1" htb rate $rate quantum 1514
}

# This tc has 32 bits for maxrate, in bytes a second.
fq() {
	tc qdisc replace dev pa parent "$1" handle "$2:" fq maxrate 30gbit
}

pfifo() {
	tc qdisc replace dev pa parent "$1" handle "$2:" pfifo limit 1000
}

shape() {
	case $1 in
	mq-shared | mq-psp | mq-htb | mq-fq | mq-pfifo)
		each_queue "${1#mq-}"
		;;
	psp)
		tc qdisc replace dev pa root handle 1: psp default 1 mode timer &&
			tc class add dev pa parent 1: classid 1:1 psp rate $rate
		;;
	htb)
		tc qdisc replace dev pa root handle 1: htb default 1 &&
			tc class add dev pa parent 1: classid 1:1 htb rate $rate quantum 1514
		;;
	cake_mq)
		tc qdisc replace dev pa root cake_mq bandwidth $rate besteffort flowblind interplanetary
		;;
	*)
		fail "shaper $1: expected mq-shared, mq-psp, mq-htb, mq-fq, mq-pfifo, cake_mq, psp or htb"
		;;
	esac
}

threads() {
	t=0
	while [ $t -lt "$cpus" ]; do
		echo rem_device_all >$PKTGEN/kpktgend_$t
		t=$((t + 1))
	done
	t=0
	while [ $t -lt "$1" ]; do
		dev=pa@$t
		echo "add_device $dev" >$PKTGEN/kpktgend_$t
		for setting in "count 0" "pkt_size 142" "dst 10.9.0.2" \
			"dst_mac 02:70:73:00:01:02" "udp_dst_min $((5001 + t))" \
			"udp_dst_max $((5001 + t))" "udp_src_min $((20001 + t))" \
			"udp_src_max $((20001 + t))" "xmit_mode queue_xmit"; do
			echo "$setting" >$PKTGEN/$dev || fail "pktgen: $setting"
		done
		t=$((t + 1))
	done
}

measure() {
	echo "name=p a=pa b=pb rate_bps=1000000000000 queues=$cpus sink=1 ring=1024 bql_min=1048576 coalesce_frames=64 coalesce_ns=50000 records_max=0" >$WIRE/create ||
		fail "no cable"
	ip link set pa up && ip link set pb up || fail "the cable does not come up"
	q=0
	while [ $q -lt "$cpus" ]; do
		[ "$cpus" -eq 1 ] || printf '%x\n' $((1 << q)) >/sys/class/net/pa/queues/tx-$q/xps_cpus ||
			fail "no XPS"
		q=$((q + 1))
	done
	shape "$1" || fail "$1: tc refuses"
	threads "$2"
	(echo start >$PKTGEN/pgctrl) &
	sleep 0.5
	begin=$(now) frames=$(counter) dropped=$(drops)
	sleep "$seconds"
	frames=$(($(counter) - frames)) ns=$(($(now) - begin)) dropped=$(($(drops) - dropped))
	waits=$(contended) meanwhile=$(counter)
	echo 1 >$TRACE/events/kprobes/contended/enable
	sleep 0.5
	echo 0 >$TRACE/events/kprobes/contended/enable
	waits=$(($(contended) - waits)) meanwhile=$(($(counter) - meanwhile))
	echo stop >$PKTGEN/pgctrl
	wait
	threads 0
	echo name=p >$WIRE/delete
	echo "$1 $2 $frames $ns $dropped $waits $meanwhile"
}

[ "$(nproc)" -ge "$cpus" ] || fail "$cpus processors are asked for, the guest has $(nproc)"
echo 'p:contended native_queued_spin_lock_slowpath' >$TRACE/kprobe_events || fail "no kprobe"
for shaper; do
	senders=1
	while [ $senders -le "$cpus" ]; do
		measure "$shaper" $senders
		senders=$((senders * 2))
	done
done
