#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The qdisc of BPF on a stock kernel, without any module of ours but the cables. The host compares
# their records with the core.
#
#   psp-send --> c1a ==== 1 Gbit/s ==== c1b (sink)
#                c2a ==== 1 Gbit/s ==== c2b (sink)
#                c3a ==== 1 Gbit/s, 2 queues ==== c3b (sink)

. "$(dirname "$0")/lib.sh"

# bpfq WORDS...: runs the crate's own test program as a command.
bpfq() {
	BPFQ="$*" $BPFQ_PROGRAM >/tmp/bpfq.out 2>&1 || { cat /tmp/bpfq.out; return 1; }
	# The test's own name stands before the first line.
	sed -n 's/^\(test qdisc_bpf_lab::in_guest ... \)\{0,1\}BPFQ //p' /tmp/bpfq.out
}

# load DEV WORDS...: begins to load programs, which are registered until /tmp/put.DEV is there.
load() {
	rm -f "/tmp/loaded.$1"
	BPFQ="load $*" $BPFQ_PROGRAM >"/tmp/load.$1" 2>&1 &
	loader=$!
}

# appears FILE: waits for a file of the loader's.
appears() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ -e "$1" ] && return 0
		nap 400
	done
	cat /tmp/load.*
	return 1
}

loaded() { appears "/tmp/loaded.$1"; }

# record CABLE NAME: keeps the cable's record.
record() {
	drained "${1}a"
	cat "$WIRE/$1/timeline.a" >"/out/$2.timeline"
	cat "$WIRE/$1/flows.a" >"/out/$2.flows"
	echo 1 >"$WIRE/$1/reset"
}

# send MS WORDS...: sends for so long as fast as the sockets take it.
send() {
	stop=$(($(sed -n 's/^now_ns //p' $WIRE/idle) + $1 * 1000000))
	shift
	psp-send --stop-ns "$stop" --sndbuf 400000 "$@" >/dev/null
}

# count PATTERN CLASS: prints the number before a word of what c1a's class has done.
count() { bpfq show c1a 0 | sed -n "s/^class $2:.* \([0-9]*\) $1.*/\1/p"; }
# sent CLASS...: prints how many packets each has sent.
sent() {
	bpfq show c1a 0 >/tmp/show
	for class in "$@"; do
		sed -n "s/^class $class: sent \([0-9]*\) .*/\1/p" /tmp/show
	done | paste -s -d ' '
}
images() { bpfq show c1a 0 | sed -n 's/^port: \([0-9]*\) .*/\1/p'; }

none_left() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(bpfq programs)" = 0 ] && return 0
		nap 100
	done
	bpfq programs
	return 1
}

cable c1 1000000000 sink=1
cable c2 1000000000 sink=1
cable c3 1000000000 sink=1 queues=2
number=0
for device in c1a c2a c3a; do
	ip addr add 10.0.$number.1/24 dev $device
	ip neigh add 10.0.$number.2 lladdr 02:00:00:00:00:02 dev $device
	number=$((number + 1))
done

refuse "before it is loaded, nobody knows it" "kind is unknown" \
	tc qdisc add dev c1a root handle 7073: psp_bpf
load c1a 0 rates=70000003,9000000 text=one
check "the kernel takes programs and classes" loaded c1a
sed 's/^/# /' /tmp/loaded.c1a
check "nothing runs there yet" same false "$(bpfq find c1a)"
check "the qdisc stands at the device" tc qdisc add dev c1a root handle 7073: psp_bpf
refuse "a device without a port has none" "No such file" \
	tc qdisc add dev c1b root handle 7073: psp_bpf
kill -9 $loader
wait $loader || true
refuse "the loader was killed, and nobody knows it" "kind is unknown" \
	tc qdisc add dev c1b root handle 7073: psp_bpf
check "another process finds it" same true "$(bpfq find c1a)"
check "and not elsewhere" same false "$(bpfq find c1b)"

send 300 --flow to=10.0.0.2:5001,payload=1458,class=7073:8001 \
	--flow to=10.0.0.2:5002,payload=958,class=7073:8002
record c1 first

# Other rates while packets wait: the clocks go on, and no packet is lost.
send 400 --flow to=10.0.0.2:5001,payload=1458,class=7073:8001 &
sender=$!
nap 100
check "other rates under traffic" bpfq configure 1 c1a 0 rates=20000000,9000000 text=two
wait $sender
record c1 changed
check "they were taken once" same 1 "$(images)"
check "none waits and none was dropped" same 2 \
	"$(bpfq show c1a 0 | grep -c ", 0 wait, 0 full 0 removed 0 late 0 long")"
# A packet that names no class, with no default, is dropped and counted.
send 10 --flow to=10.0.0.2:5003,payload=100,rate=80000
check "packets of no class are counted" sh -c \
	"echo '$(bpfq show c1a 0)' | grep -q '[1-9][0-9]* of no class, 0 lost, text two'"

# An idle device takes nothing, and can be configured again.
check "an idle device" bpfq configure 1 c1a 0 rates=1000000,2000000,3000000 text=three
check "a second time" bpfq configure 2 c1a 0 rates=30000000,30000000 text=four
check "took nothing" same 1 "$(images)"
send 5 --flow to=10.0.0.2:5001,payload=1458,class=7073:8002
check "but the last one, at a packet" same 2 "$(images)"
send 1500 --flow to=10.0.0.2:5001,payload=1458,class=7073:8002 &
sender=$!
check "50 times under traffic" bpfq configure 50 c1a 0 rates=30000000,30000000 text=five
check "packets went on meanwhile" kill -0 $sender
check "many were taken" at_least 25 "$(images)"
wait $sender
drained c1a
check "no packet was lost" at_least 1 \
	"$(bpfq show c1a 0 | grep -c 'class 8002:.* 0 full 0 removed 0 late 0 long')"
check "a class goes" bpfq configure 1 c1a 0 first=32770 rates=90000000,90000000 text=six
before=$(images)
refuse "more classes than slots" "room for 8" \
	bpfq configure 1 c1a 0 first=100 rates=1000000,1000000,1000000,1000000,1000000,1000000,1000000
check "what was asked for before still is" same six "$(bpfq show c1a 0 | sed -n 's/.*text //p')"
send 5 --flow to=10.0.0.2:5001,payload=1458,class=7073:8002
check "and is taken" same $((before + 1)) "$(images)"

# Matches: a cgroup, then a port, then the address.
mkdir -p /tmp/cgroup
mount -t cgroup2 none /tmp/cgroup
mkdir -p /tmp/cgroup/one/below
id=$(stat -c %i /tmp/cgroup/one)
check "matches" bpfq configure 1 c1a 0 rates=90000000,90000000,90000000 "cgroup=$id:1"
send 5 --flow to=10.0.0.2:5001,payload=1458,class=7073:8002
drained c1a
check "a class that comes again begins at 0" same 0 "$(sent 8001)"
before="$(sent 8001 8002 8003)"
send 20 --flow to=10.0.0.2:5001,payload=1458
drained c1a
between="$(sent 8001 8002 8003)"
check "the port's class has sent" sh -c "[ '${before% * *}' = '${between% * *}' ] &&
	[ '${before##* }' = '${between##* }' ] && [ '$before' != '$between' ]"
send 20 --flow to=10.0.0.2:5002,payload=1458
drained c1a
after="$(sent 8001 8002 8003)"
check "the address's class has sent" sh -c "[ '${after% *}' = '${between% *}' ] &&
	[ '$after' != '$between' ]"
(
	sh -c 'echo $PPID' >/tmp/cgroup/one/below/cgroup.procs
	send 20 --flow to=10.0.0.2:5001,payload=1458
)
drained c1a
last="$(sent 8001 8002 8003)"
check "the cgroup's class has sent" sh -c "[ '${after#* }' = '${last#* }' ] &&
	[ '$after' != '$last' ]"

# The cgroup's class id, where no match claims a packet.
mkdir -p /tmp/net_cls
if mount -t cgroup -o net_cls none /tmp/net_cls; then
	mkdir /tmp/net_cls/two
	echo $((0x70738002)) >/tmp/net_cls/two/net_cls.classid
	bpfq configure 1 c1a 0 rates=90000000,90000000
	before=$(sent 8002)
	(
		sh -c 'echo $PPID' >/tmp/net_cls/two/cgroup.procs
		send 20 --flow to=10.0.0.2:5001,payload=1458
	)
	drained c1a
	check "the class of net_cls has sent" at_least $((before + 100)) "$(sent 8002)"
fi

# Tags in the frame, and IPv6 behind them.
# shellcheck disable=SC2046
set -- $(sent 8001 8002)
check "matches of a VLAN" bpfq configure 1 c1a 0 rates=90000000,90000000,90000000 vlan=5
[ -d $PKTGEN ] || modprobe pktgen
# generate SETTING...: sends frames of pktgen's to port 5001 through the qdisc.
generate() {
	echo "rem_device_all" >$PKTGEN/kpktgend_0
	echo "add_device c1a" >$PKTGEN/kpktgend_0
	for setting in "count 20" "pkt_size 1400" "frags 3" "xmit_mode queue_xmit" \
		"dst_mac 02:00:00:00:00:02" "udp_dst_min 5001" "udp_dst_max 5001" "$@"; do
		echo "$setting" >$PKTGEN/c1a
	done
	echo start >$PKTGEN/pgctrl
	drained c1a
	echo "$(sent 8001 8002 8003)"
}
first=$(generate "dst6 fd00::2" "src6 fd00::1" "vlan_id 5")
check "frames of IPv6 in a VLAN" same "$(($1 + 20)) $2 0" "$first"
second=$(generate "dst 10.0.0.2" "vlan_id 5")
third=$(generate "dst6 fd00::2" "src6 fd00::1")
check "frames of IPv4 in a VLAN" same "$(($1 + 20)) $(($2 + 20)) 0" "$second"
check "frames of IPv6" same "$(($1 + 20)) $(($2 + 20)) 20" "$third"

# Packets that wait for too long, and such as are too long.
check "a deadline" bpfq configure 1 c1a 0 rates=9000000,9000000 deadline_ns=20000000
before=$(sent 8001)
send 100 --flow to=10.0.0.2:5001,payload=1458,class=7073:8001
drained c1a
check "late packets are dropped and counted" at_least 50 "$(count late 8001)"
check "the rate is kept meanwhile" at_least 60 "$(($(sent 8001) - before))"
send 100 --flow to=10.0.0.2:5001,payload=1458,class=7073:8001 &
sender=$!
nap 50
check "shorter frames" bpfq configure 1 c1a 0 rates=9000000,9000000 longest=1014
nap 20
check "longer ones are the device's" same 0 "$(count long 8001)"
ip link set c1a mtu 1000
wait $sender
ip link set c1a mtu 1500
drained c1a
check "long packets are dropped and counted" at_least 50 "$(count long 8001)"

# More packets than a port has places for.
check "a class without a limit" bpfq configure 1 c1a 0 \
	rates=9000000,9000000,9000000 limit=60000 vlan=5
before=$(sent 8001)
last=$(generate "dst6 fd00::2" "src6 fd00::1" "vlan_id 5" "count 12000" "pkt_size 100")
check "packets beyond the places are dropped as of a full class" at_least 1 "$(count full 8001)"
check "the others have left" same "$((before + 12000))" "${last%% *}"

# A class with a reservation beside one that takes all the rest, while the configuration changes.
check "a reservation" bpfq configure 1 c1a 0 reserve=3000
echo 1 >"$WIRE/c1/reset"
begun() { bpfq show c1a 0 | sed -n "s/^periods: .* \([0-9]*\) $1.*/\1/p; s/^periods: \([0-9]*\) $1.*/\1/p"; }
both() {
	send "$1" --flow to=10.0.0.2:5001,payload=1458,class=7073:8001,rate=4000000 \
		--flow to=10.0.0.2:5002,payload=1458,class=7073:8002
}
both 500
record c1 reserved
before=$(begun begun)
both 500 &
sender=$!
nap 100
check "twenty times under traffic" bpfq configure 20 c1a 0 reserve=3000
wait $sender
drained c1a
after=$(begun begun)
check "each period was begun once" sh -c "[ $((after - before)) -ge 250 ] && [ $((after - before)) -le 300 ]"
check "each frame left in its period" same "0 0" "$(begun overrun) $(begun deferred)"

# A second device with programs of its own, and two queues below mq of a third.
load c2a 0 rates=31000000
check "a second set" loaded c2a
check "at a second device" tc qdisc add dev c2a root handle 7073: psp_bpf
second=$loader
load c3a 2 rates=31000000
check "another set is not registered beside it" appears /tmp/taken.c3a
touch /tmp/put.c2a
wait $second
check "a third set" loaded c3a
tc qdisc add dev c3a root handle 7073: mq
check "at a queue" tc qdisc add dev c3a parent 7073:1 handle 1: psp_bpf
check "at the other" tc qdisc add dev c3a parent 7073:2 handle 2: psp_bpf
touch /tmp/put.c3a
wait $loader
refuse "nobody knows it then" "kind is unknown" tc qdisc add dev c1b root handle 7073: psp_bpf
check "three sets run" same 3 "$(bpfq programs)"
check "one queue is configured" bpfq configure 1 c3a 2 rates=50000000 text=queue
send 300 --flow to=10.0.1.2:5001,payload=1458,class=7073:8001
record c2 other
send 50 --flow to=10.0.2.2:5001,payload=1458,class=7073:8001 \
	--flow to=10.0.2.2:5002,payload=1458,class=7073:8001
check "both queues send" at_least 2 "$(tc -s qdisc show dev c3a | grep -c 'Sent [1-9].*')"
check "each queue has its own" same true \
	"$(bpfq show c3a 2 | grep -q 'text queue' && ! bpfq show c3a 1 | grep -q queue && echo true)"

# Programs with more room take the place of those that run.
load c1a 0 rates=9000000 text=anew
check "the same device anew" loaded c1a
check "in the place of the old" tc qdisc replace dev c1a root handle 7074: psp_bpf
touch /tmp/put.c1a
wait $loader
check "the new ones are found" same anew "$(bpfq show c1a 0 | sed -n 's/.*text //p')"

# They go with packets in them.
send 100 --flow to=10.0.0.2:5001,payload=900,class=7073:8001 &
sender=$!
send 100 --flow to=10.0.1.2:5001,payload=900,class=7073:8001 &
other=$!
nap 50
check "a qdisc goes with packets in it" tc qdisc del dev c1a root
check "a device goes with packets in it" cut_cable c2
wait $sender $other 2>/dev/null || true
tc qdisc del dev c3a root
check "no program is left" none_left
finish
