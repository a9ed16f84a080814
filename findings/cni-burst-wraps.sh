#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What bucket the bandwidth plugin of CNI makes of the burst that containerd gives it.
. "$(dirname "$0")/lib.sh"

finding 'with the burst that containerd gives, 4294967295 bits, a pod of any rate may send 537 MB at once' \
	'below 15.6 Mbit/s the plugin computes the bucket in 32 bits of ticks, and it wraps: 193 MB at 10 Mbit/s, 2 MB at
       300 kbit/s. At 130 kibit/s it is 1373 bytes, and tbf drops every packet that is larger. The queue may be longer by
       the whole burst, minutes of the rate, than the 25 ms in the source (plugins 1.10.0: the same)'

packages "$work/tree" trixie containernetworking-plugins=1.1.1+ds1-3+b17 iproute2=6.15.0-1
# In a namespace of its own: veth to the namespace of a pod, for each rate the plugin's tbf, and 40 packets.
cat >"$work/rates" <<'END'
set -eu
ip() { chroot "$tree" /usr/sbin/ip "$@"; }
tc() { chroot "$tree" /usr/sbin/tc "$@"; }
unshare -n sleep 60 &
pod=$!
trap 'kill $pod' EXIT
while [ "$(readlink /proc/$pod/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add va type veth peer name vb netns $pod
ip link set va up
nsenter -t $pod -n chroot "$tree" /usr/sbin/ip link set vb up
ip addr add 10.0.0.1/24 dev va
ip neigh replace 10.0.0.2 dev va lladdr 02:00:00:00:00:02 nud permanent
for rate in 100000000 10000000 1000000 300000 133120; do
	printf '{"cniVersion":"1.0.0","name":"n","type":"bandwidth","runtimeConfig":{"bandwidth":{"ingressRate":%s,
		"ingressBurst":4294967295}},"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"va"},
		{"name":"vb","sandbox":"/proc/%s/ns/net"}]}}' $rate $pod |
		CNI_COMMAND=ADD CNI_CONTAINERID=x CNI_NETNS=/proc/$pod/ns/net CNI_IFNAME=vb CNI_PATH=/usr/lib/cni \
			chroot "$tree" /usr/lib/cni/bandwidth >/dev/null
	echo "tbf_$rate" "$(tc -d qdisc show dev va)"
	python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for size in 1300, 1400:
    for _ in range(20):
        s.sendto(bytes(size), ("10.0.0.2", 9))'
	echo "dropped_$rate" "$(tc -s qdisc show dev va | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')"
	tc qdisc del dev va root
done
END
inside "$work/tree" /usr/sbin/tc -V >/dev/null
unshare -n env tree="$work/tree" sh "$work/rates" >"$work/said" || cannot "there is no tbf or veth here"
seen '100 Mbit/s: tbf' "$(said tbf_100000000)" '*rate 100Mbit burst 512Mb/1 mpu 0b lat 25ms*'
seen '10 Mbit/s: tbf' "$(said tbf_10000000)" '*rate 10Mbit burst 193273526b/1 mpu 0b lat 275s*'
seen '1 Mbit/s: tbf' "$(said tbf_1000000)" '*rate 1Mbit burst 21474835b/1 mpu 0b lat 4.12e+03s*'
seen '300 kbit/s: tbf' "$(said tbf_300000)" '*rate 300Kbit burst 2147482b/1 mpu 0b lat 1.37e+03s*'
seen '130 kibit/s: tbf' "$(said tbf_133120)" '*rate 133*bit burst 1373b/1 *'
seen '10 Mbit/s: dropped of 20 packets of 1342 bytes and 20 of 1442' "$(said dropped_10000000)" 0
seen '130 kibit/s: dropped of them' "$(said dropped_133120)" 20
done_
