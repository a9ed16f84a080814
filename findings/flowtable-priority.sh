#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a flow loses and keeps when it moves to the flowtable of nftables.
. "$(dirname "$0")/lib.sh"
finding 'the flowtable of nftables (in software) skips hooks of netfilter: egress qdiscs treat the packets as before' \
	'it also skips what IP forwarding does to a packet. Its priority is no longer set by the TOS, so after the first packets a flow changes its band of prio; and the socket of a sender in a container of this host stays with the packet: a full shaper blocks the sender, where forwarded packets are dropped'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 \
	'sch_prio sch_tbf veth nf_tables nft_flow_offload nf_flow_table nf_flow_table_inet nf_conntrack nft_ct' python3-minimal nftables
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
		ip -n n route add default via 10.0.0.1
		echo 1 >/proc/sys/net/ipv4/ip_forward
		cat >/tmp/echo.py <<'END'
		import socket
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.bind(("10.0.0.2", 99))
		open("/tmp/ready", "w")
		while True:
		    data, sender = s.recvfrom(2000)
		    if len(data) == 1:
		        s.sendto(data, sender)
		END
		cat >/tmp/send.py <<'END'
		import os, socket, subprocess, sys, time
		host = os.open("/run/netns/host", os.O_RDONLY)
		inside = os.open("/proc/self/ns/net", os.O_RDONLY)

		def tc(arguments):
		    # In the host's network namespace.
		    os.setns(host)
		    out = subprocess.run("tc " + arguments, shell=True, capture_output=True, text=True).stdout
		    os.setns(inside)
		    return out

		def bands():
		    return [int(line.split()[3]) for line in tc("-s class show dev va").splitlines() if line.startswith(" Sent")]

		name = sys.argv[1]
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.setsockopt(socket.IPPROTO_IP, 1, 0x10)
		s.settimeout(5)
		s.connect(("10.0.0.2", 99))
		tc("qdisc replace dev va root handle 1: prio")
		seen = []
		for _ in range(6):
		    before = bands()
		    s.send(b"x")
		    s.recv(10)
		    seen.append([b - a for a, b in zip(before, bands())].index(1))
		    time.sleep(.1)
		print(name + "_bands", *seen)
		tc("qdisc replace dev va root tbf rate 1mbit burst 20k limit 200k")
		for _ in range(300):
		    s.send(b"x" * 1400)
		time.sleep(1)
		print(name + "_dropped", tc("-s qdisc show dev va").split("dropped ")[1].split(",")[0], flush=True)
		tc("qdisc del dev va root")
		END
		touch /run/netns/host
		mount --bind /proc/self/ns/net /run/netns/host
		ip netns exec n python3 /tmp/echo.py &
		echo=$!
		while [ ! -e /tmp/ready ]; do sleep 1; done
		ip netns exec s python3 /tmp/send.py plain
		cat >/tmp/rules <<'END'
		table inet f {
			flowtable t {
				hook ingress priority 0
				devices = { vs, va }
			}
			chain c {
				type filter hook forward priority 0
				meta l4proto udp flow add @t
			}
		}
		END
		nft -f /tmp/rules
		echo "nft $(nft -v)"
		ip netns exec s python3 /tmp/send.py offloaded
		kill $echo
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said nft
seen 'forwarded: bands of six datagrams with TOS 0x10' "$(said plain_bands)" '0 0 0 0 0 0'
seen 'in the flowtable: bands of six' "$(said offloaded_bands)" '0 * 1 1 1'
seen_within 'forwarded: datagrams of 300 that a tbf of 1 Mbit/s drops' "$(said plain_dropped)" 20 300
seen 'in the flowtable: dropped' "$(said offloaded_dropped)" 0
done_
