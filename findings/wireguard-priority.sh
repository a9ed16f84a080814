#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a packet still has below a tunnel of what its socket gave it.
. "$(dirname "$0")/lib.sh"
finding 'below a tunnel a packet has what it had above: priority and launch time' \
	'below VXLAN and GRE it has. WireGuard clears the priority, so SO_PRIORITY selects no class of the outer device, yet keeps the launch time, which fq obeys'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_htb sch_fq veth vxlan ip_gre wireguard' python3-minimal wireguard-tools
{
	veth_pair
	cat <<-'EOF'
		ip link add vx type vxlan id 7 remote 10.0.0.2 dstport 4789 dev va
		ip addr add 10.1.0.1/24 dev vx
		ip link set vx up
		ip neigh add 10.1.0.2 lladdr 02:00:00:00:00:02 dev vx
		ip link add gr type gre local 10.0.0.1 remote 10.0.0.2
		ip addr add 10.2.0.1/24 dev gr
		ip link set gr up
		for i in 1 2; do
			wg genkey >/tmp/key$i
			wg pubkey </tmp/key$i >/tmp/pub$i
		done
		ip link add wg0 type wireguard
		wg set wg0 private-key /tmp/key1 listen-port 5000 peer "$(cat /tmp/pub2)" allowed-ips 10.5.0.0/24 endpoint 10.0.0.2:5000
		ip addr add 10.5.0.1/24 dev wg0
		ip link set wg0 up
		ip -n n link add wg0 type wireguard
		ip netns exec n wg set wg0 private-key /tmp/key2 listen-port 5000 peer "$(cat /tmp/pub1)" allowed-ips 10.5.0.0/24 endpoint 10.0.0.1:5000
		ip -n n addr add 10.5.0.2/24 dev wg0
		ip -n n link set wg0 up
		ping -c 3 10.5.0.2 >/dev/null
		cat >/tmp/send.py <<'END'
		import socket, struct, subprocess, time

		def tc(arguments):
		    return subprocess.run("tc " + arguments, shell=True, capture_output=True, text=True).stdout

		for name, to in ("plain", "10.0.0.2"), ("vxlan", "10.1.0.2"), ("gre", "10.2.0.2"), ("wireguard", "10.5.0.2"):
		    tc("qdisc add dev va root handle 1: htb default 99")
		    tc("class add dev va parent 1: classid 1:17 htb rate 1gbit")
		    tc("class add dev va parent 1: classid 1:99 htb rate 1gbit")
		    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    s.setsockopt(socket.SOL_SOCKET, 12, 0x10017)
		    for _ in range(10):
		        s.sendto(b"x" * 1000, (to, 9))
		    time.sleep(1)
		    print(name, *[int(tc("-s class show dev va classid 1:" + c).split(" Sent ")[1].split()[0]) // 10000 for c in ("17", "99")])
		    tc("qdisc del dev va root")
		    tc("qdisc add dev va root fq")
		    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    s.setsockopt(socket.SOL_SOCKET, 61, struct.pack("iI", time.CLOCK_MONOTONIC, 0))
		    s.sendmsg([b"x" * 1000], [(socket.SOL_SOCKET, 61, struct.pack("Q", time.monotonic_ns() + 4 * 10**9))], 0, (to, 9))
		    time.sleep(.5)
		    waits = tc("-s qdisc show dev va").split("backlog ")[1].split()[1]
		    time.sleep(5)
		    print(name + "_waits", waits, tc("-s qdisc show dev va").split("backlog ")[1].split()[1], flush=True)
		    tc("qdisc del dev va root")
		END
		python3 /tmp/send.py
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
for name in plain vxlan gre; do
	seen "$name: tens of datagrams in class 1:17, which SO_PRIORITY names, and in the default class" "$(said $name)" '1 0'
	seen "$name: packets in fq 0.5 and 5.5 s after one with a launch time 4 s ahead" "$(said ${name}_waits)" '1p 0p'
done
seen 'wireguard: tens in class 1:17 and in the default class' "$(said wireguard)" '0 1'
seen 'wireguard: packets in fq' "$(said wireguard_waits)" '1p 0p'
done_
