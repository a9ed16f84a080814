#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Results as the plugins of networks give them, and devices as they make them: what each command of
# CNI does behind each, and what arrives at the far end.
#
#   pod N: psp-send --> eth0 -- cali..., eni..., veth...
#                                 > forwarded --> c1a ==== 1 Gbit/s ==== c1b (sink)
#
# usage: networks.sh BACKEND

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/pod.sh"

backend=$1

# result NETWORK POD: prints what the plugin of a network answers, by its version of CNI.
result() {
	ip4="\"version\": \"4\", \"address\": \"10.1.$2.5/24\""
	sandbox="\"sandbox\": \"/var/run/netns/$2\""
	case $1 in
	flannel | multus) echo "\"cniVersion\": \"0.3.1\", \"interfaces\": [
		{ \"name\": \"cni0\", \"mac\": \"02:00:00:00:00:01\" },
		{ \"name\": \"veth$2\", \"mac\": \"02:00:00:00:00:02\" },
		{ \"name\": \"eth0\", \"mac\": \"02:00:00:00:00:03\", $sandbox } ],
		\"ips\": [ { \"interface\": 2, $ip4, \"gateway\": \"10.1.$2.1\" } ], \"dns\": {}" ;;
	calico-3.29) echo "\"cniVersion\": \"0.3.1\", \"interfaces\": [ { \"name\": \"veth$2\" } ],
		\"ips\": [ { $ip4 } ], \"dns\": {}" ;;
	calico-3.30) echo "\"cniVersion\": \"0.3.1\", \"interfaces\": [ { \"name\": \"veth$2\" },
		{ \"name\": \"eth0\", $sandbox } ], \"ips\": [ { $ip4 } ], \"dns\": {}" ;;
	weave) echo "\"cniVersion\": \"0.3.0\", \"ips\": [ { $ip4, \"gateway\": \"10.1.$2.1\" } ],
		\"dns\": {}" ;;
	aws-vpc) echo "\"cniVersion\": \"0.4.0\", \"interfaces\": [ { \"name\": \"veth$2\" },
		{ \"name\": \"eth0\", $sandbox },
		{ \"name\": \"dummy$2\", \"mac\": \"0\", \"sandbox\": \"0\" } ],
		\"ips\": [ { \"interface\": 1, $ip4 } ], \"dns\": {}" ;;
	bridge | ptp) echo "\"cniVersion\": \"1.0.0\", \"interfaces\": [ { \"name\": \"veth$2\" },
		{ \"name\": \"eth0\", $sandbox } ],
		\"ips\": [ { \"interface\": 1, \"address\": \"10.1.$2.5/24\" } ], \"dns\": {}" ;;
	macvlan | ipvlan) echo "\"cniVersion\": \"1.0.0\", \"interfaces\": [
		{ \"name\": \"eth0\", $sandbox } ],
		\"ips\": [ { \"interface\": 0, \"address\": \"10.1.$2.5/24\" } ], \"dns\": {}" ;;
	esac
}

# conf BANDWIDTH [MORE]: prints the configuration that a runtime would give.
conf() {
	result=$(result "$network" "$pod")
	echo "{ $(echo "$result" | sed -n 's/^\("cniVersion": "[0-9.]*",\).*/\1/p')
		\"name\": \"$network\", \"type\": \"pspacer-cni\", \"psp\": { \"backend\": \"$backend\" },
		\"runtimeConfig\": { \"bandwidth\": { $1 } }, \"prevResult\": { $result } ${2-} }"
}

# cni COMMAND: calls the plugin with the configuration on standard input.
cni() {
	CNI_COMMAND=$1 CNI_CONTAINERID=pod$pod CNI_NETNS=/var/run/netns/$pod CNI_IFNAME=eth0 \
		$PLUGIN 2>/tmp/log
}

call() { conf "$2" "${3-}" | cni "$1"; }

add() { call ADD "$1" >/tmp/json; }

# devices POD: prints the qdiscs of both ends.
devices() {
	tc -n "$1" qdisc show
	tc qdisc show
}

# send MS PORT: sends as fast as the socket takes it, in the pod.
send() {
	now=$(sed -n 's/^now_ns //p' $WIRE/idle)
	"$IP" netns exec "$pod" psp-send --stop-ns $((now + $1 * 1000000)) --sndbuf 100000 \
		--flow "to=10.0.0.2:$2,payload=1458" >/dev/null
	nap 100
}

cable c1 1000000000 sink=1
ip addr add 10.0.0.1/24 dev c1a
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev c1a
echo 1 >/proc/sys/net/ipv4/ip_forward
# Pods of other hosts' networks whose devices have the same indices.
ip netns add other
ip -n other link add veth90 type veth peer name veth91
pod=0
for network in flannel multus calico-3.29 calico-3.30 weave aws-vpc bridge ptp macvlan ipvlan; do
	pod=$((pod + 1))
	both='"egressRate": 50000000, "ingressRate": 40000000'
	case $network in
	macvlan | ipvlan)
		both='"egressRate": 50000000'
		ip netns add $pod
		ip link add d$pod type dummy
		ip link set d$pod up
		ip link add link d$pod name eth0 netns $pod type $network
		ip -n $pod link set eth0 up
		;;
	*) pod $pod ;;
	esac
	before=$(devices $pod)
	check "$network: STATUS" call STATUS ""
	check "$network: ADD" add "$both"
	check "$network: the result is passed on" grep -q '"cniVersion":' /tmp/json
	check "$network: CHECK" call CHECK "$both"
	case $network in
	macvlan | ipvlan) ;;
	*)
		send 200 $((5000 + pod))
		cat "$WIRE/c1/timeline.a" >"/out/$backend-$network.timeline"
		cat "$WIRE/c1/flows.a" >"/out/$backend-$network.flows"
		echo 1 >"$WIRE/c1/reset"
		check "$network: the host's end is paced" \
			same 1 "$($PLUGIN list | grep -c "$network pod$pod .*ingress 40 Mbit/s")"
		# Others give the ends another address, and another name.
		ip -n $pod link set eth0 address 02:00:00:00:99:0$((pod % 10))
		ip link set "veth$pod" down
		ip link set "veth$pod" name "cali$pod"
		ip link set "cali$pod" up
		;;
	esac
	# `cnitool gc` does not say which attachments are valid.
	check "$network: GC of nobody knows what" call GC ""
	check "$network: it stays" sh -c "$PLUGIN list | grep -q '$network pod$pod '"
	check "$network: GC that names it" call GC "" \
		", \"cni.dev/valid-attachments\": [ { \"containerID\": \"pod$pod\", \"ifname\": \"eth0\" } ]"
	check "$network: CHECK" call CHECK "$both"
	check "$network: DEL" call DEL ""
	[ $pod -gt 8 ] || {
		ip link set "cali$pod" down
		ip link set "cali$pod" name "veth$pod"
		ip link set "veth$pod" up
	}
	check "$network: nothing is left" same "$before" "$(devices $pod)"
	check "$network: no record is left" sh -c '! ls -d /run/pspacer/cni/*'
done

# What has lost its namespace goes, also if nobody says what is valid.
network=calico-3.29
pod=20
pod 20
check "ADD" add '"egressRate": 50000000'
ip netns del 20
nap 300
check "GC of nobody knows what" call GC ""
check "no record is left" sh -c '! ls -d /run/pspacer/cni/*'

# The stock plugin in the same list paces the same direction.
pod=21
pod 21
tc qdisc add dev veth21 root handle 1: tbf rate 40mbit burst 100000 latency 25ms
refuse "ADD beside the stock plugin" 'bandwidth. puts such a qdisc there' \
	call ADD '"egressRate": 50000000, "ingressRate": 40000000'
refuse "its message names nothing that the plugin lacks" '"code":100.*expected none"' \
	call ADD '"egressRate": 50000000, "ingressRate": 40000000'
tc qdisc del dev veth21 root
check "ADD" add '"egressRate": 50000000, "ingressRate": 40000000'
tc qdisc replace dev veth21 root handle 9: pfifo
refuse "CHECK where others have changed the device" '"code":101.*qdisc pfifo 9:' \
	call CHECK '"egressRate": 50000000, "ingressRate": 40000000'
check "DEL" call DEL ""

# Another runtime's folder is not ours, and a full disk keeps no parts.
RUNTIME_DIRECTORY=/run/containerd
export RUNTIME_DIRECTORY
check "ADD below a unit" add '"egressRate": 50000000'
check "its record is where others look" sh -c 'ls /run/pspacer/cni/*/* >/dev/null'
check "DEL" call DEL ""
unset RUNTIME_DIRECTORY
mkdir -p /run/pspacer/cni
mount -t tmpfs -o size=4k none /run/pspacer/cni
head -c 4096 /dev/zero >/run/pspacer/cni/full
rm /run/pspacer/cni/full
mkdir -p "/run/pspacer/cni/$network"
head -c 4096 /dev/zero >/run/pspacer/cni/full || :
refuse "ADD on a full disk" '"code":5' call ADD '"egressRate": 50000000'
check "nothing of it stays" same "" "$(find /run/pspacer/cni -name '*.new')"
umount /run/pspacer/cni
check "and nothing is paced" same noqueue \
	"$(tc -n 21 qdisc show dev eth0 root | sed -n 's/^qdisc \([^ ]*\) .*/\1/p')"
finish
