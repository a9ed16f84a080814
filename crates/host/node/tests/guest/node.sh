#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A node whose pods have claims: pspacer-cni puts a claim's rate in force, and pspacer-node puts back
# what somebody has deleted.
#
#   1: psp-send --> eth0 -- veth1, forwarded --> c1a ==== 1 Gbit/s ==== c1b (sink)
#
# usage: node.sh BACKEND...
#   PLUGIN  answers a call of CNI as pspacer-cni does
#   NODE    pspacer-node

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/pod.sh"

CLAIMS=/run/pspacer/claims

# cni COMMAND POD: calls the plugin as a runtime of Kubernetes does, with a rate of the network.
cni() {
	cat >/tmp/conf <<-END
		{ "cniVersion": "1.1.0", "name": "pods", "type": "pspacer-cni",
		  "psp": { "backend": "$backend", "rate": "100mbit", "budget": "70mbit" },
		  "prevResult": { "cniVersion": "1.1.0", "interfaces": [ { "name": "veth$2" },
		    { "name": "eth0", "sandbox": "/var/run/netns/$2" } ],
		    "ips": [ { "interface": 1, "address": "10.1.$2.5/24" } ] } }
	END
	CNI_COMMAND=$1 CNI_CONTAINERID=pod$2 CNI_NETNS=/var/run/netns/$2 CNI_IFNAME=eth0 \
		CNI_ARGS="K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-$2;K8S_POD_UID=uid-$2" $PLUGIN
}

# claim POD EGRESS INGRESS: is prepared, rates in Mbit/s.
claim() {
	mkdir -p $CLAIMS
	cat >"$CLAIMS/uid-$1:claim-$1.json" <<-END
		{ "uid": "claim-$1", "namespace": "default", "name": "net-$1", "pod_uid": "uid-$1",
		  "shares": [ { "request": "net", "pool": "n1", "device": "uplink", "share_id": null,
		    "egress_bps": ${2}000000, "ingress_bps": ${3}000000 } ] }
	END
}

# sent NAME: the pod sends as fast as its socket takes it; keeps what the cable saw.
sent() {
	echo 1 >$WIRE/c1/reset
	now=$(sed -n 's/^now_ns //p' $WIRE/idle)
	"$IP" netns exec 1 psp-send --stop-ns $((now + 300000000)) --sndbuf 100000 \
		--flow "to=10.0.0.2:5001,payload=1458" >/dev/null
	nap 100
	cat $WIRE/c1/timeline.a >"/out/$1.timeline"
	cat $WIRE/c1/flows.a >"/out/$1.flows"
}

once() { $NODE once "$@"; }
says_nothing() { same "" "$(once)"; }
repairs() { once | tee /tmp/said | grep -q '^repaired: pods pod1 eth0 default/web-1: ' || { cat /tmp/said; return 1; }; }

cable c1 1000000000 sink=1
ip addr add 10.0.0.1/24 dev c1a
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev c1a
echo 1 >/proc/sys/net/ipv4/ip_forward
pod 2

for backend; do
	pod 1
	claim 1 60 40
	check "$backend: the agent has nothing to do" says_nothing
	check "$backend: ADD, with a claim that goes before the network's rate" cni ADD 1
	sent "$backend-claim"
	refuse "$backend: a pod without a claim has what is left" 'expected at most 10000000 bit/s' \
		cni ADD 2
	check "$backend: ADD again" cni ADD 1
	check "$backend: CHECK" cni CHECK 1
	check "$backend: all is in force" says_nothing

	check "$backend: the pod's qdisc is deleted" tc -n 1 qdisc del dev eth0 root
	refuse "$backend: CHECK sees it" '"code":101' cni CHECK 1
	check "$backend: the agent puts it back" repairs
	check "$backend: CHECK" cni CHECK 1
	sent "$backend-repaired"
	check "$backend: the host's is deleted" tc qdisc del dev veth1 root
	check "$backend: the agent puts it back" repairs
	check "$backend: all is in force" says_nothing
	if [ "$backend" = edt ]; then
		check "$backend: the program is lost" tc -n 1 qdisc del dev eth0 clsact
		check "$backend: the agent puts it back" repairs
		check "$backend: CHECK" cni CHECK 1
	fi

	tc -n 1 qdisc del dev eth0 root
	tc -n 1 qdisc add dev eth0 root handle 5: pfifo
	refuse "$backend: a qdisc of others stays" '^failed: pods pod1 eth0 .*configured by others' once
	refuse "$backend: that is a failure" '"what":"failed"' once --json
	tc -n 1 qdisc del dev eth0 root
	check "$backend: the agent puts its own back" repairs

	check "$backend: status" sh -c "$NODE status | grep -q 'claim default/net-1 claim-1 egress 60 Mbit/s ingress 40 Mbit/s on pods pod1 eth0'"
	check "$backend: it counts once" sh -c "$NODE status | grep -q '^egress: 60 Mbit/s granted'"

	# A folder of namespaces that a container does not see is no reason.
	mount -t tmpfs none /var/run/netns
	refuse "$backend: a namespace that is hidden is not gone" 'no network namespace' once
	umount /var/run/netns
	check "$backend: all is in force" says_nothing
	ip netns del 1
	nap 300
	check "$backend: a pod that is gone" sh -c "$NODE once | grep -q '^removed: pods pod1 eth0 default/web-1: .*is gone'"
	check "$backend: its record is" sh -c '! ls -d /run/pspacer/cni/*'
	check "$backend: its claim is the kubelet's" ls "$CLAIMS/uid-1:claim-1.json"
	rm -r $CLAIMS
done
finish
