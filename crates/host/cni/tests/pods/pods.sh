#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Pods as the plugins bridge, ptp, macvlan and ipvlan leave them, which pspacer-cni paces.
#
#   1: psp-send --> eth0 -- veth1 \
#                                  > forwarded --> c1a ==== 1 Gbit/s ==== c1b (sink)
#   2: psp-send --> eth0 -- veth2 /
#   psp-send --> veth1 -- eth0 of 1, forwarded --> c2a ==== 1 Gbit/s ==== c2b (sink)
#   3: eth0, a macvlan of d3; 4: eth0, an ipvlan of d4
#
# usage: pods.sh BACKEND...

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/pod.sh"

kinds=
# What more the plugin's configuration says.
psp=

# conf BACKEND POD [BANDWIDTH [MORE]]: prints the configuration that a runtime would give.
conf() {
	cat <<-END
		{ "cniVersion": "1.1.0", "name": "pods", "type": "pspacer-cni", "psp": { "backend": "$1"$psp },
		  "runtimeConfig": { "bandwidth": { ${3-} } },
		  "prevResult": { "cniVersion": "1.1.0", "interfaces": [ { "name": "veth$2" },
		    { "name": "eth0", "sandbox": "/var/run/netns/$2" } ],
		    "ips": [ { "interface": 1, "address": "10.1.$2.5/24" } ] } ${4-} }
	END
}

# cni COMMAND POD: calls the plugin with the configuration on standard input.
cni() {
	CNI_COMMAND=$1 CNI_CONTAINERID=pod$2 CNI_NETNS=/var/run/netns/$2 CNI_IFNAME=eth0 \
		CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-$2" $PLUGIN 2>/tmp/log
}

# egress MBIT, both MBIT-OUT MBIT-IN: print rates as a runtime gives them.
egress() { echo "\"egressRate\": ${1}000000, \"egressBurst\": 2147483647"; }
both() { echo "$(egress "$1"), \"ingressRate\": ${2}000000, \"ingressBurst\": 2147483647"; }

conf_add() { conf "$1" "$2" "$3" | cni ADD "$2"; }
add() { conf "$1" "$2" "$3" | cni ADD "$2" >"/tmp/result$2"; }
is_checked() { conf "$1" "$2" "$3" | cni CHECK "$2"; }
del() { conf "$1" "$2" | cni DEL "$2"; }
del_unnamed() { conf "$1" "$2" | CNI_COMMAND=DEL CNI_CONTAINERID=pod$2 CNI_IFNAME=eth0 $PLUGIN; }
status() { conf "$1" 1 | cni STATUS 1; }

# gc BACKEND POD...: these are valid.
gc() {
	backend_=$1
	shift
	valid=
	for pod_; do
		valid="$valid${valid:+, }{ \"containerID\": \"pod$pod_\", \"ifname\": \"eth0\" }"
	done
	conf "$backend_" 1 "" ", \"cni.dev/valid-attachments\": [ $valid ]" | cni GC 1
}

# stands POD: prints the qdiscs and filters of both ends.
stands() {
	tc -n "$1" qdisc show
	tc -n "$1" filter show dev eth0 egress 2>/dev/null || :
	tc qdisc show
}

root_kind() { tc -n "$1" qdisc show dev eth0 root | sed -n 's/^qdisc \([^ ]*\) .*/\1/p'; }

# kept NAME CABLE: keeps a cable's record for the host, and begins another.
kept() {
	cat "$WIRE/$2/timeline.a" >"/out/$1.timeline"
	cat "$WIRE/$2/flows.a" >"/out/$1.flows"
	echo 1 >"$WIRE/$2/reset"
}

# send POD MS PORT [TO]: sends as fast as the socket takes it, in a pod or on the host (0).
send() {
	now=$(sed -n 's/^now_ns //p' $WIRE/idle)
	run=
	[ "$1" = 0 ] || run="$IP netns exec $1"
	$run psp-send --stop-ns $((now + $2 * 1000000)) --sndbuf 100000 \
		--flow "to=${4:-10.0.0.2}:$3,payload=1458" >/dev/null
	nap 100
}

# past_qdisc POD FRAMES: sends frames that no qdisc sees from the pod's device.
past_qdisc() {
	$IP netns exec "$1" sh -e -c "
		cd /proc/net/pktgen
		echo 'add_device eth0' >kpktgend_0
		for setting in 'count $2' 'pkt_size 200' 'xmit_mode start_xmit' 'dst 10.3.0.9'; do
			echo \"\$setting\" >eth0
		done
		echo start >pgctrl
		echo rem_device_all >kpktgend_0"
}

# kept_record COMMAND...: runs it, and leaves the record of pod 1 as it was.
kept_record() {
	record_=/run/pspacer/cni/pods/pod1:eth0.json
	cat $record_ >/tmp/record
	"$@" || return
	cat /tmp/record >$record_
}

cable c1 1000000000 sink=1
ip addr add 10.0.0.1/24 dev c1a
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev c1a
echo 1 >/proc/sys/net/ipv4/ip_forward
pod 1
pod 2
cable c2 1000000000 sink=1
ip link set c2a netns 1
ip -n 1 addr add 10.3.0.1/24 dev c2a
ip -n 1 link set c2a up
ip -n 1 neigh add 10.3.0.2 lladdr 02:00:00:00:00:02 dev c2a
ip netns exec 1 sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
ip route add 10.3.0.0/24 via 10.1.1.5
for number in 3 4; do
	kind=macvlan
	[ $number = 3 ] || kind=ipvlan
	ip link add d$number type dummy
	ip link set d$number up
	ip netns add $number
	ip link add link d$number name eth0 netns $number type $kind || continue
	ip -n $number link set eth0 up
	kinds="$kinds $number"
done
check "the guest has macvlan and ipvlan" same " 3 4" "$kinds"

for backend; do
	before=$(stands 1; stands 2)
	check "$backend: STATUS" status "$backend"
	check "$backend: STATUS leaves nothing" same "$before" "$(stands 1; stands 2)"

	# Two at once.
	add "$backend" 1 "$(egress 100)" &
	first=$!
	check "$backend: ADD" add "$backend" 2 "$(egress 100)"
	wait $first && ended=0 || ended=$?
	check "$backend: and another at the same time" same 0 $ended
	check "$backend: the result is passed on" grep -q '"address":"10.1.1.5/24"' /tmp/result1
	check "$backend: what is ignored is said once" same 1 "$(grep -c 'egressBurst' /tmp/log)"
	check "$backend: CHECK" is_checked "$backend" 1 "$(egress 100)"
	check "$backend: CHECK of the other" is_checked "$backend" 2 "$(egress 100)"
	stood=$(stands 1)
	check "$backend: ADD again" add "$backend" 1 "$(egress 100)"
	check "$backend: changes nothing" same "$stood" "$(stands 1)"
	send 1 300 5001 &
	first=$!
	send 2 300 5002
	wait $first
	kept "$backend-both" c1

	check "$backend: CHECK counts what was sent" is_checked "$backend" 1 "$(egress 100)"
	past_qdisc 1 200
	refuse "$backend: CHECK sees frames that leave past the class" \
		'eth0. sent [0-9]* frames since ADD or CHECK looked last' \
		is_checked "$backend" 1 "$(egress 100)"
	check "$backend: and that no more do" is_checked "$backend" 1 "$(egress 100)"

	# Taken away and put back by others: ADD does it, and the record is from before.
	put_back() { kept_record add "$backend" 1 "$(egress 100)"; }
	tc -n 1 qdisc del dev eth0 root
	check "$backend: an equal qdisc is put back" put_back
	refuse "$backend: CHECK sees that it is another" '"code":101.*eth0. has another qdisc or class' \
		is_checked "$backend" 1 "$(egress 100)"
	check "$backend: and then knows that one" is_checked "$backend" 1 "$(egress 100)"
	if [ "$backend" = module ]; then
		send 1 50 5009
		echo 1 >"$WIRE/c1/reset"
		check "CHECK counts what was sent" is_checked "$backend" 1 "$(egress 100)"
		class=$(tc -n 1 class show dev eth0 | sed -n 's/^class psp \([^ ]*\) .*/\1/p')
		check "a class is deleted" tc -n 1 class del dev eth0 classid "$class"
		check "an equal one is put back" put_back
		refuse "CHECK sees that it is another" '"code":101.*eth0. has another qdisc or class' \
			is_checked "$backend" 1 "$(egress 100)"
	fi

	# Other rates under traffic, beside another pod's.
	send 1 400 5001 &
	first=$!
	send 2 400 5002 &
	second=$!
	nap 150
	check "$backend: set" $PLUGIN set pod1 eth0 egress=20mbit
	wait $first $second
	kept "$backend-set" c1
	check "$backend: it is listed" sh -c "$PLUGIN list | grep -q 'pod1 eth0 default/web-1 .* egress 20 Mbit/s .*(set)'"
	check "$backend: CHECK knows" is_checked "$backend" 1 "$(egress 100)"
	check "$backend: ADD with another rate" add "$backend" 1 "$(egress 50)"
	check "$backend: CHECK" is_checked "$backend" 1 "$(egress 50)"
	refuse "$backend: CHECK of a rate that is not there" '"code":101' \
		is_checked "$backend" 1 "$(egress 100)"
	refuse "$backend: CHECK of no rate" '"code":101' is_checked "$backend" 1 ""

	# By hand.
	if [ "$backend" = module ]; then
		class=$(tc -n 1 class show dev eth0 | sed -n 's/^class psp \([^ ]*\) .*/\1/p')
		check "a class is deleted" tc -n 1 class del dev eth0 classid "$class"
	else
		check "$backend: the qdisc is deleted" tc -n 1 qdisc del dev eth0 root
	fi
	refuse "$backend: CHECK sees it" '"code":101' is_checked "$backend" 1 "$(egress 50)"
	check "$backend: ADD mends it" add "$backend" 1 "$(egress 50)"
	check "$backend: CHECK" is_checked "$backend" 1 "$(egress 50)"

	# Towards the pod.
	check "$backend: both directions" add "$backend" 1 "$(both 50 40)"
	check "$backend: CHECK" is_checked "$backend" 1 "$(both 50 40)"
	send 0 300 5003 10.3.0.2
	kept "$backend-ingress" c2
	tc qdisc del dev veth1 root
	refuse "$backend: CHECK sees that the host's end is not paced" '"code":101' \
		is_checked "$backend" 1 "$(both 50 40)"
	check "$backend: ADD" add "$backend" 1 "$(both 50 40)"
	check "$backend: one direction less" add "$backend" 1 "$(egress 50)"
	check "$backend: CHECK" is_checked "$backend" 1 "$(egress 50)"
	check "$backend: both again" add "$backend" 1 "$(both 50 40)"
	for number in $kinds; do
		refuse "$backend: no end on the host" "ingressRate. is 40000000, expected none or 0" \
			conf_add "$backend" "$number" "$(both 50 40)"
		check "$backend: what it sends" add "$backend" "$number" "$(egress 50)"
		check "$backend: CHECK" is_checked "$backend" "$number" "$(egress 50)"
	done

	# Others' qdiscs stay.
	check "$backend: GC" gc "$backend" 1 2
	for number in $kinds; do
		check "$backend: GC takes away what is not valid" same noqueue "$(root_kind $number)"
	done
	check "$backend: and nothing else" is_checked "$backend" 1 "$(both 50 40)"
	check "$backend: DEL" del "$backend" 1
	check "$backend: DEL again" del "$backend" 1
	check "$backend: DEL of the other, whose namespace is not named" del_unnamed "$backend" 2
	check "$backend: nothing is left" same "$before" "$(stands 1; stands 2)"
	check "$backend: no record is left" sh -c '! ls -d /run/pspacer/cni/*'

	# Another ADD that fails amid its changes: at the host's end a filter finds a block that others share.
	if [ "$backend" = edt ]; then
		check "ADD" add "$backend" 1 "$(egress 50)"
		tc qdisc add dev veth1 egress_block 7 clsact
		refuse "ADD again that the host's end refuses" '"code":100.*shared' conf_add "$backend" 1 "$(both 60 30)"
		check "the pod's end is as before" is_checked "$backend" 1 "$(egress 50)"
		check "and the host's" same noqueue "$(tc qdisc show dev veth1 root | sed -n 's/^qdisc \([^ ]*\) .*/\1/p')"
		check "and the record" sh -c "$PLUGIN list | grep -q 'egress 50 Mbit/s ingress -$'"
		check "DEL" del "$backend" 1
		tc qdisc del dev veth1 clsact 2>/dev/null || :
		check "ADD of both" add "$backend" 1 "$(both 50 40)"
		tc qdisc del dev veth1 clsact
		tc qdisc add dev veth1 egress_block 7 clsact
		refuse "set that the host's end refuses, now and back" 'shared.*; and not all of it is taken back: .*shared' \
			$PLUGIN set pod1 eth0 egress=60mbit ingress=30mbit
		tc qdisc del dev veth1 clsact
		check "set again" $PLUGIN set pod1 eth0 egress=50mbit ingress=40mbit
		check "both are as before" is_checked "$backend" 1 "$(both 50 40)"
		check "DEL" del "$backend" 1
	fi

	# A budget: who is refused leaves nothing, and of two at once one has the last part.
	psp=', "budget": "150mbit", "ingress-budget": "40mbit"'
	check "$backend: within the budget" add "$backend" 1 "$(both 100 40)"
	refuse "$backend: beyond it" \
		'"code":102.*egressRate. is 60000000 bit/s, expected at most 50000000 bit/s' \
		conf_add "$backend" 2 "$(egress 60)"
	refuse "$backend: beyond that of the other direction" \
		'"code":102.*ingressRate. is 1000000 bit/s, expected at most 0 bit/s' \
		conf_add "$backend" 2 "$(both 1 1)"
	check "$backend: who is refused leaves no record" sh -c '! ls /run/pspacer/cni/pods/pod2:*'
	refuse "$backend: set beyond it" '.egress. is 151000000 bit/s.*code 102' \
		$PLUGIN set pod1 eth0 egress=151mbit
	check "$backend: nor changes anything" is_checked "$backend" 1 "$(both 100 40)"
	check "$backend: what is left" same '"left_bps":50000000' \
		"$($PLUGIN list --json | grep -o '"left_bps":50000000')"
	check "$backend: less" $PLUGIN set pod1 eth0 egress=90mbit
	check "$backend: then the other has room" add "$backend" 2 "$(egress 60)"
	check "$backend: DEL" del "$backend" 1
	check "$backend: DEL of the other" del "$backend" 2
	conf_add "$backend" 1 "$(egress 80)" >/tmp/first 2>&1 &
	first=$!
	conf_add "$backend" 2 "$(egress 80)" >/tmp/second 2>&1 || :
	wait $first || :
	check "$backend: of two at once one is refused" \
		same 1 "$(cat /tmp/first /tmp/second | grep -c '"code":102')"
	check "$backend: DEL" del "$backend" 1
	check "$backend: DEL of the other" del "$backend" 2
	check "$backend: nothing is left" same "$before" "$(stands 1; stands 2)"
	check "$backend: no record is left" sh -c '! ls -d /run/pspacer/cni/*'
	psp=

	tc -n 1 qdisc add dev eth0 root handle 5: pfifo
	refuse "$backend: a qdisc of others stays" "configured by others" \
		conf_add "$backend" 1 "$(egress 50)"
	check "$backend: DEL where others are" del "$backend" 1
	check "$backend: it is still there" same pfifo "$(root_kind 1)"
	tc -n 1 qdisc del dev eth0 root

	# The pod is gone.
	pod 5
	check "$backend: ADD" add "$backend" 5 "$(both 50 40)"
	ip netns del 5
	nap 300
	check "$backend: DEL without the namespace" del "$backend" 5
	check "$backend: DEL again" del "$backend" 5
	pod 5
	check "$backend: ADD" add "$backend" 5 "$(both 50 40)"
	ip netns del 5
	nap 300
	check "$backend: GC without the namespace" gc "$backend"
	check "$backend: no record is left" sh -c '! ls -d /run/pspacer/cni/*'
done

if ! grep -q bpf_qdisc_watchdog_schedule /sys/kernel/btf/vmlinux; then
	refuse "STATUS where nothing can pace" '"code":50' status bpf
	for backend; do
		check "$backend: ADD" add "$backend" 1 "$(both 50 40)"
		stood=$(tc -n 1 qdisc show)
		refuse "$backend: ADD again by what the kernel lacks" '"code":100' conf_add bpf 1 "$(both 60 30)"
		check "$backend: what it had stands there" same "$stood" "$(tc -n 1 qdisc show)"
		check "$backend: CHECK" is_checked "$backend" 1 "$(both 50 40)"
		check "$backend: its record is as before" sh -c "$PLUGIN list | grep -q 'backend $backend egress 50 Mbit/s ingress 40 Mbit/s'"
		check "$backend: DEL" del "$backend" 1
	done
fi
finish
