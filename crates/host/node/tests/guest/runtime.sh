#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A container runtime, Debian's containerd, lays two pods out by Debian's plugin ptp and pspacer-cni,
# or the stock plugin. A container of each sends by TCP, beside a transfer of the host.
#
#   pod a, pod b: psp-send --> eth0 -- veth -- forwarded --> c1a ==== 1 Gbit/s ==== c1b --> far
#
# usage: runtime.sh MBIT MS module|bpf|edt|stock
#   KUBELET  calls the runtime: the words in CRI_CALL

. "$(dirname "$0")/lib.sh"

mbit=$1
ms=$2
backend=$3
LIST='/cni/bin/pspacer-cni list'
case $backend in
stock) limits='"type": "bandwidth"' ;;
*) limits="\"type\": \"pspacer-cni\", \"psp\": {
	\"backend\": \"$backend\", \"budget\": \"$((2 * mbit + 50))mbit\" }" ;;
esac

cri() { CRI_CALL="$*" $KUBELET >/tmp/said 2>&1 || { cat /tmp/said; return 1; }; }
ctr() { /ctr/ctr -a /run/containerd/containerd.sock -n k8s.io "$@"; }

# image: makes the image of sandboxes and containers, and gives it to containerd.
image() {
	mkdir -p /tmp/layer/bin /tmp/image
	cp /bin/busybox /usr/bin/psp-send /tmp/layer/bin
	tar -C /tmp/layer -cf /tmp/image/layer.tar bin
	digest=$(sha256sum /tmp/image/layer.tar | cut -d ' ' -f 1)
	cat >/tmp/image/config.json <<-END
		{ "architecture": "amd64", "os": "linux",
		  "config": { "Entrypoint": ["/bin/busybox", "sleep", "100000"] },
		  "rootfs": { "type": "layers", "diff_ids": ["sha256:$digest"] } }
	END
	cat >/tmp/image/manifest.json <<-END
		[{ "Config": "config.json", "RepoTags": ["localhost/pause:1"], "Layers": ["layer.tar"] }]
	END
	tar -C /tmp/image -cf /tmp/image.tar manifest.json config.json layer.tar
	ctr images import /tmp/image.tar
}

start_containerd() {
	/ctr/containerd --config /etc/containerd.toml >>/tmp/containerd.log 2>&1 &
	echo $! >/tmp/containerd.pid
	for _ in $(seq 100); do
		ctr version >/dev/null 2>&1 && return
		sleep 0.2
	done
	cat /tmp/containerd.log
	return 1
}

at_once() {
	CRI_CALL="run a ${mbit}M 50M" $KUBELET >/tmp/said.a 2>&1 &
	first=$!
	CRI_CALL="run b ${mbit}M 50M" $KUBELET >/tmp/said.b 2>&1 &
	second=$!
	wait $first && wait $second || { cat /tmp/said.a /tmp/said.b; return 1; }
}

lists() { $LIST | tee /tmp/listed | grep -q -e "$1" || { cat /tmp/listed; return 1; }; }

# nothing_left: no record, no namespace, no end of a veth.
nothing_left() {
	! ls -d /run/pspacer/cni/* 2>/dev/null && ! ls /var/run/netns | grep cni- &&
		! ip link show type veth | grep .
}

pause_of() { ctr tasks ls | sed -n "s/^$(cat "/tmp/sandbox.$1") *\([0-9]*\) .*/\1/p"; }
netns_of() { ip netns identify "$(pause_of "$1")"; }

mkdir -p /etc/cni/net.d /var/lib/containerd /sys/fs/cgroup /var/run/netns
mount -t tmpfs none /var/lib/containerd
mount -t cgroup2 none /sys/fs/cgroup
touch /etc/hosts /etc/resolv.conf /etc/hostname
ip link set lo up
echo '#!/bin/sh
exec /cni/ld.so --library-path /cni /cni/pspacer-cni "$@"' >/cni/bin/pspacer-cni
chmod +x /cni/bin/*
export PATH=/ctr:$PATH
cat >/etc/containerd.toml <<-END
	version = 2
	[plugins."io.containerd.grpc.v1.cri"]
	sandbox_image = "localhost/pause:1"
	[plugins."io.containerd.grpc.v1.cri".cni]
	bin_dir = "/cni/bin"
	conf_dir = "/etc/cni/net.d"
	[plugins."io.containerd.grpc.v1.cri".containerd]
	snapshotter = "overlayfs"
	[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
	runtime_type = "io.containerd.runc.v2"
	[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
	# The guest's root is its initial file system, which cannot be pivoted.
	NoPivotRoot = true
END
cat >/etc/cni/net.d/10-pods.conflist <<-END
	{ "cniVersion": "1.0.0", "name": "pods", "plugins": [
	  { "type": "ptp", "ipam": { "type": "host-local", "ranges": [[{ "subnet": "10.1.0.0/16" }]],
	    "routes": [{ "dst": "0.0.0.0/0" }] } },
	  { "capabilities": { "bandwidth": true }, $limits } ] }
END

cable c1 1000000000 snap=58
ip netns add far
ip link set c1b netns far
ip addr add 10.0.0.1/24 dev c1a
ip -n far addr add 10.0.0.2/24 dev c1b
ip -n far link set c1b up
ip -n far route add 10.1.0.0/16 via 10.0.0.1
echo 1 >/proc/sys/net/ipv4/ip_forward
tc qdisc replace dev c1a root fq_codel
"$IP" netns exec far sh -c 'echo "4096 1000000 64000000" >/proc/sys/net/ipv4/tcp_rmem'

check "containerd starts" start_containerd
check "it takes an image" image
check "it is ready" cri status
check "two pods at once" at_once
if [ "$backend" != stock ]; then
	check "list names one" lists "default/web-a .* egress $mbit Mbit/s ingress 50 Mbit/s"
	check "list names the other" lists "default/web-b .* egress $mbit Mbit/s ingress 50 Mbit/s"
fi
receivers=
for port in 5001 5002 5003; do
	"$IP" netns exec far psp-recv --port $port --tcp >/dev/null &
	receivers="$receivers $!"
done
start=$(($(now_ns) + 8000000000))
stop=$((start + ms * 1000000))
check "a container in the first" cri start a 5001 $start $stop
check "a container in the second" cri start b 5002 $start $stop
echo "proto=tcp,to=10.0.0.2:5003,congestion=cubic,start=$start" >/tmp/flows
echo 1 >$WIRE/c1/reset
check "all that was before the start" at_most $start "$(now_ns)"
psp-send --stop-ns $stop --flows /tmp/flows >/tmp/sent || :
cat $WIRE/c1/timeline.a >"/out/$backend.timeline"
cat $WIRE/c1/flows.a >"/out/$backend.flows"
# shellcheck disable=SC2086 # a list
kill -TERM $receivers
# shellcheck disable=SC2086
wait $receivers || :

if [ "$backend" = stock ]; then
	finish
	exit
fi
refuse "a third is beyond the budget" '50000000 bit/s, what is left' cri run c ${mbit}M 50M
check "it is not listed" same "" "$($LIST | grep web-c)"
check "the sandbox of the first is killed" kill -KILL "$(pause_of a)"
nap 500
check "the first is listed until it is stopped" lists 'default/web-a'
check "it is stopped" cri stop a
check "it is stopped again" cri stop a
check "it is removed" cri remove a
check "it is not listed" same "" "$($LIST | grep web-a)"
check "the second is" lists 'default/web-b'
mkdir -p /run/pspacer/claims
cat >/run/pspacer/claims/uid-d:claim-d.json <<-END
	{ "uid": "claim-d", "namespace": "default", "name": "net-d", "pod_uid": "uid-d",
	  "shares": [ { "request": "net", "pool": "n1", "device": "uplink", "share_id": null,
	    "egress_bps": 120000000, "ingress_bps": 0 } ] }
END
check "what it had is free, for a pod with a claim" cri run d ${mbit}M 50M
check "the claim holds" lists 'default/web-d .* egress 120 Mbit/s ingress 50 Mbit/s'
kill -KILL "$(cat /tmp/containerd.pid)"
nap 500
check "containerd starts again" start_containerd
check "it is ready" cri status
check "the second is still listed" lists 'default/web-b'
check "the namespace of the second is lost" ip netns del "$(netns_of b)"
for pod in b d; do
	check "$pod is stopped" cri stop $pod
	check "$pod is removed" cri remove $pod
done
check "nothing is left" nothing_left
grep -i 'level=\(error\|fatal\)' /tmp/containerd.log | cut -c 1-300 | tail -n 20
finish
