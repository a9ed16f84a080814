#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# How many flows fq sees in a tunnel.
. "$(dirname "$0")/lib.sh"
finding 'a tunnel is one flow of fq at the outer device: one pair of addresses and ports, and WireGuard encrypts what is inside; maxrate bounds the tunnel' \
	'fq goes by the socket or by the hash of the inner packet, which stays with a packet through GRE and WireGuard: eight inner flows are eight, each gets maxrate, and the tunnel eight times that'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq veth ip_gre wireguard' python3-minimal wireguard-tools
{
	veth_pair
	cat <<-'EOF'
		ip netns add s
		ip link add vs type veth peer name s0 netns s
		ip addr add 10.0.1.1/24 dev vs
		ip link set vs up
		ip -n s addr add 10.0.1.2/24 dev s0
		ip -n s link set s0 up
		ip -n s route add default via 10.0.1.1
		echo 1 >/proc/sys/net/ipv4/ip_forward
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
		ip netns exec n wg set wg0 private-key /tmp/key2 listen-port 5000 peer "$(cat /tmp/pub1)" allowed-ips 10.5.0.0/24,10.0.1.0/24 endpoint 10.0.0.1:5000
		ip -n n addr add 10.5.0.2/24 dev wg0
		ip -n n link set wg0 up
		ping -c 3 10.5.0.2 >/dev/null
		cat >/tmp/send.py <<'END'
		import socket, sys
		sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]
		for port, s in enumerate(sockets):
		    s.bind(("0.0.0.0", 7000 + port))
		for _ in range(5):
		    for s in sockets:
		        s.sendto(b"x" * 300, (sys.argv[1], 9))
		END
		for to in gre=10.2.0.2 wireguard=10.5.0.2; do
			for from in local forwarded; do
				tc qdisc add dev va root fq maxrate 1kbit initial_quantum 256 quantum 256
				if [ $from = local ]; then
					python3 /tmp/send.py "${to#*=}"
				else
					ip netns exec s python3 /tmp/send.py "${to#*=}"
				fi
				sleep 1
				tc -s qdisc show dev va | sed -n 's/.*throttled \([0-9]*\)).*/\1/p' | say "${to%=*}_$from"
				tc qdisc del dev va root
			done
		done
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'GRE: flows that wait, of 8 local ones' "$(said gre_local)" 8
seen 'GRE: of 8 forwarded ones' "$(said gre_forwarded)" 8
seen 'WireGuard: of 8 local ones' "$(said wireguard_local)" 8
seen 'WireGuard: of 8 forwarded ones' "$(said wireguard_forwarded)" 8
done_
