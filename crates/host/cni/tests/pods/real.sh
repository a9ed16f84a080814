#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Real parts: cnitool and Debian's plugins lay a pod out, and pspacer-cni or the stock plugin limits
# it. A TCP transfer, and a probe each 10 ms, leave the pod; the cable records both.
#
#   pod: psp-send --> eth0 -- veth -- forwarded --> c1a ==== 1 Gbit/s ==== c1b --> far: psp-recv
#
# usage: real.sh MBIT MS

. "$(dirname "$0")/lib.sh"

mbit=$1
ms=$2
export CNI_PATH=/cni/bin NETCONFPATH=/cni/net.d
cnitool() { /cni/cnitool "$@"; }

# list NAME FIRST LAST: writes a conflist of a first plugin, with addresses, and the one to be tested.
list() {
	cat >"$NETCONFPATH/$1.conflist" <<-END
		{ "cniVersion": "1.0.0", "name": "$1", "plugins": [
		  { $2, "ipam": { "type": "host-local", "ranges": [[{ "subnet": "10.1.0.0/16" }]],
		    "routes": [{ "dst": "0.0.0.0/0" }] } },
		  { "capabilities": { "bandwidth": true }, $3 } ] }
	END
}

in_ns() {
	space=$1
	shift
	"$IP" netns exec "$space" "$@"
}

# caps BURST: rates as a runtime gives them.
caps() {
	export CAP_ARGS="{ \"bandwidth\": { \"egressRate\": ${mbit}000000, \"egressBurst\": $1,
		\"ingressRate\": ${mbit}000000, \"ingressBurst\": $1 } }"
}

# cell NAME LIST BURST
cell() {
	ip netns add pod
	caps "$3"
	check "$1: cnitool add" cnitool add "$2" /var/run/netns/pod
	check "$1: cnitool check" cnitool check "$2" /var/run/netns/pod
	"$IP" netns exec far psp-recv --port 5001 --tcp >/dev/null &
	receiver=$!
	"$IP" netns exec far psp-recv --port 6001 >/dev/null &
	probed=$!
	echo 1 >$WIRE/c1/reset
	now=$(now_ns)
	{
		echo "proto=tcp,to=10.0.0.2:5001,congestion=cubic,start=$((now + 200000000))"
		echo "to=10.0.0.2:6001,payload=16,rate=46400"
	} >/tmp/flows
	in_ns pod psp-send --stop-ns $((now + 200000000 + ms * 1000000)) --flows /tmp/flows >/tmp/sent || :
	cat $WIRE/c1/timeline.a >"/out/$1.timeline"
	cat $WIRE/c1/flows.a >"/out/$1.flows"
	cat $WIRE/c1/snap.a >/tmp/snap
	psp-launched "/out/$1.timeline" /tmp/snap 6001 58 >"/out/$1.waits"
	echo "$1: waits of the probe: $(cat "/out/$1.waits")"
	kill -TERM $receiver $probed
	wait $receiver $probed || :
	check "$1: cnitool del" cnitool del "$2" /var/run/netns/pod
	check "$1: cnitool del again" cnitool del "$2" /var/run/netns/pod
	check "$1: no record is left" sh -c '! ls -d /run/pspacer/cni/* 2>/dev/null'
	ip netns del pod
}

mkdir -p $NETCONFPATH
echo '#!/bin/sh
exec /cni/ld.so --library-path /cni /cni/pspacer-cni "$@"' >/cni/bin/pspacer-cni
chmod +x /cni/bin/* /cni/cnitool
psp='"type": "pspacer-cni", "psp": { "backend":'
list stock '"type": "ptp"' '"type": "bandwidth"'
list bridged '"type": "bridge", "bridge": "cni0", "isGateway": true' "$psp \"module\" }"
list module '"type": "ptp"' "$psp \"module\" }"
list edt '"type": "ptp"' "$psp \"edt\" }"

cable c1 1000000000 snap=58
ip netns add far
ip link set c1b netns far
ip addr add 10.0.0.1/24 dev c1a
in_ns far "$IP" addr add 10.0.0.2/24 dev c1b
in_ns far "$IP" link set c1b up
in_ns far "$IP" route add 10.1.0.0/16 via 10.0.0.1
echo 1 >/proc/sys/net/ipv4/ip_forward
in_ns far sh -c 'echo "4096 1000000 64000000" >/proc/sys/net/ipv4/tcp_rmem'

# What the kubelet asks for.
cell stock stock 2147483647
# 10 ms of the rate.
cell stock-small stock $((mbit * 10000))
cell module module 2147483647
cell edt edt 2147483647
cell bridged bridged 2147483647
finish
