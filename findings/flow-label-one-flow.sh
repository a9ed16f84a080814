#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What fq of a router takes for one flow of IPv6.
. "$(dirname "$0")/lib.sh"
finding 'packets of different ports are of different flows at a router'\''s fq; the flow label adds to that' \
	'where a packet has a flow label, ports do not count: eight flows of UDP between two hosts with one label are one flow, with one share and one maxrate. Labels that say whose traffic it is make flows of all of it'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		ip netns add s
		ip link add vs type veth peer name s0 netns s
		for dev in vs va; do echo 0 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6; done
		echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
		ip link set vs up
		ip -n s link set s0 up
		ip -6 addr add fd00::1/64 dev va nodad
		ip -6 addr add fd01::1/64 dev vs nodad
		ip -6 neigh add fd00::2 dev va lladdr 02:00:00:00:00:02 nud permanent
		sleep 2
		cat >/tmp/send.py <<'END'
		import socket, struct, sys
		router = bytes.fromhex(sys.argv[1].replace(":", ""))
		label = int(sys.argv[2])
		addresses = socket.inet_pton(socket.AF_INET6, "fd01::2") + socket.inet_pton(socket.AF_INET6, "fd00::2")

		def frame(port):
		    rest = struct.pack("!HHHH", port, 9, 108, 0) + b"x" * 100
		    # The checksum of pseudo header and datagram.
		    total = sum(struct.unpack("!90H", addresses + struct.pack("!HH", 108, 17) + rest + bytes(36)))
		    while total >> 16:
		        total = (total & 0xffff) + (total >> 16)
		    rest = rest[:6] + struct.pack("!H", ~total & 0xffff or 0xffff) + rest[8:]
		    return router + b"\x02\0\0\0\0\x09\x86\xdd" + struct.pack("!IHBB", 6 << 28 | label, 108, 17, 64) + addresses + rest

		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
		s.bind(("s0", 0))
		for _ in range(5):
		    for port in range(7000, 7008):
		        s.send(frame(port))
		END
		for label in 0 5; do
			tc qdisc add dev va root fq maxrate 1kbit initial_quantum 256 quantum 256
			ip netns exec s python3 /tmp/send.py "$(cat /sys/class/net/vs/address)" $label
			sleep 1
			tc -s qdisc show dev va | sed -n 's/.*throttled \([0-9]*\)).*/\1/p' | say label$label
			tc -s qdisc show dev va | awk '/backlog/ { print $3 + 0 }' | say backlog$label
			tc qdisc del dev va root
		done
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'no flow label: flows that wait, of 8 that are forwarded' "$(said label0)" 8
seen 'flow label 5: flows that wait' "$(said label5)" 1
seen_within 'packets that wait in it, of 40' "$(said backlog5)" 35 40
done_
