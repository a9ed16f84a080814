#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What fq does to forwarded packets while some socket of the router wants receive timestamps.
. "$(dirname "$0")/lib.sh"
finding 'whether some socket asks for receive timestamps (ping, chrony, ptp4l do) makes no difference to what a router forwards' \
	'while one does, each packet that the router receives has the time of its arrival where fq looks for a launch time. IP forwarding clears it, MPLS forwarding does not: fq takes the wall clock for a time half a century ahead and drops every MPLS packet (horizon_drops). Linux 7.3.4 does not'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq veth mpls_router mpls_iptunnel' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		modprobe mpls_router
		modprobe mpls_iptunnel
		ip netns add s
		ip link add vs type veth peer name s0 netns s
		ip addr add 10.0.1.1/24 dev vs
		ip link set vs up
		ip -n s addr add 10.0.1.2/24 dev s0
		ip -n s link set s0 up
		ip -n s route add 10.0.0.0/24 via 10.0.1.1
		echo 1 >/proc/sys/net/ipv4/ip_forward
		echo 1000 >/proc/sys/net/mpls/platform_labels
		echo 1 >/proc/sys/net/mpls/conf/vs/input
		ip -f mpls route add 100 via inet 10.0.0.2 dev va
		ip -n s route add 10.99.0.0/24 encap mpls 100 via 10.0.1.1
		ip -n s neigh replace 10.0.1.1 dev s0 lladdr "$(cat /sys/class/net/vs/address)" nud permanent
		cat >/tmp/send.py <<'END'
		import socket, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for _ in range(20):
		    s.sendto(b"x", (sys.argv[1], 9))
		END
		cat >/tmp/stamps.py <<'END'
		import socket, time
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.setsockopt(socket.SOL_SOCKET, 35, 1)
		open("/tmp/ready", "w")
		time.sleep(100)
		END
		# forward NAME TO: what fq has done with 20 packets.
		forward() {
			tc qdisc add dev va root fq
			ip netns exec s python3 /tmp/send.py "$2"
			sleep 1
			tc -s qdisc show dev va | sed -n 's/.* \([0-9]*\) pkt (dropped \([0-9]*\).*/sent \1 dropped \2/p; s/^ *\(horizon_drops.*\)/\1/p' | say "$1"
			tc qdisc del dev va root
		}
		forward ip_before 10.0.0.2
		forward mpls_before 10.99.0.2
		python3 /tmp/stamps.py &
		stamps=$!
		while [ ! -e /tmp/ready ]; do sleep 1; done
		sleep 1
		forward ip_while 10.0.0.2
		forward mpls_while 10.99.0.2
		kill $stamps
		wait $stamps
		sleep 1
		forward mpls_after 10.99.0.2
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'IP, nobody wants timestamps' "$(said ip_before)" 'sent 20 dropped 0'
seen 'MPLS, nobody wants timestamps' "$(said mpls_before)" 'sent 20 dropped 0'
seen 'IP, a socket has SO_TIMESTAMPNS' "$(said ip_while)" 'sent 20 dropped 0'
seen 'MPLS, a socket has SO_TIMESTAMPNS' "$(said mpls_while)" 'sent 0 dropped 20 horizon_drops 20'
seen 'MPLS, when that socket is closed' "$(said mpls_after)" 'sent 20 dropped 0'
done_
