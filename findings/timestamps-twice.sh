#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# How many software timestamps a sender gets for one packet.
. "$(dirname "$0")/lib.sh"
finding 'a packet has one time at which it came to the qdisc (SCHED) and one at which it left (SND)' \
	'one of SCHED for each device with which it is sent, one of SND for each driver: two SCHED over a VLAN device, and a sender in a container behind a bridge gets both times of its veth and both of the host'\''s port, all with one number. Routed by the host it gets those of its veth alone'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'veth 8021q bridge' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		ip link add link va name v5 type vlan id 5
		ip addr add 10.5.0.1/24 dev v5
		ip link set v5 up
		ip neigh add 10.5.0.2 lladdr 02:00:00:00:00:02 dev v5
		ip link add br0 type bridge
		ip link set br0 up
		for i in 1 2; do
			ip netns add c$i
			ip link add h$i type veth peer name i$i netns c$i
			ip link set h$i up
			ip -n c$i link set i$i up
		done
		ip link add port type veth peer name far
		ip link set port up
		ip link set far up
		ip link set port master br0
		ip link set h1 master br0
		ip -n c1 addr add 10.6.0.1/24 dev i1
		ip -n c1 neigh add 10.6.0.2 lladdr 02:00:00:00:00:02 dev i1
		ip addr add 10.7.0.1/24 dev h2
		ip -n c2 addr add 10.7.0.2/24 dev i2
		ip -n c2 route add default via 10.7.0.1
		echo 1 >/proc/sys/net/ipv4/ip_forward
		sleep 3
		cat >/tmp/send.py <<'END'
		import socket, struct, sys, time
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		# TX_SCHED, TX_SOFTWARE, SOFTWARE, OPT_ID, OPT_TSONLY
		s.setsockopt(socket.SOL_SOCKET, 37, 1 << 8 | 1 << 1 | 1 << 4 | 1 << 7 | 1 << 11)
		s.sendto(b"x", (sys.argv[2], 9))
		time.sleep(1)
		got = []
		while True:
		    try:
		        control = s.recvmsg(1, 500, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)[1]
		    except BlockingIOError:
		        break
		    for level, kind, value in control:
		        if (level, kind) == (0, 11):
		            what, number = struct.unpack_from("II", value, 8)
		            got.append(("SND", "SCHED")[what] + str(number))
		print(sys.argv[1], *got, flush=True)
		END
		python3 /tmp/send.py plain 10.0.0.2
		python3 /tmp/send.py vlan 10.5.0.2
		ip netns exec c1 python3 /tmp/send.py bridged 10.6.0.2
		ip netns exec c2 python3 /tmp/send.py routed 10.0.0.2
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
seen 'of a veth, with the number of the packet' "$(said plain)" 'SCHED0 SND0'
seen 'of a VLAN device over a veth' "$(said vlan)" 'SCHED0 SCHED0 SND0'
seen 'of a container behind a bridge' "$(said bridged)" 'SCHED0 SND0 SCHED0 SND0'
seen 'of a container whose packets the host routes' "$(said routed)" 'SCHED0 SND0'
done_
