#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Whether a priority given at a router's ingress is there at its egress.
. "$(dirname "$0")/lib.sh"
finding 'skbedit at ingress gives a packet a priority, which selects its class of htb where it leaves the router' \
	'of IPv6 only. IPv4 forwarding overwrites the priority by the packet'\''s TOS, so each goes to the default class, unless the sysctl ip_forward_update_priority is 0'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_htb sch_ingress cls_matchall act_skbedit veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		ip netns add s
		ip link add vs type veth peer name s0 netns s
		for dev in vs va; do echo 0 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6; done
		echo 1 >/proc/sys/net/ipv4/ip_forward
		echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
		ip addr add 10.0.1.1/24 dev vs
		ip link set vs up
		ip -n s link set s0 up
		ip -n s addr add 10.0.1.2/24 dev s0
		ip -6 addr add fd00::1/64 dev va nodad
		ip -6 addr add fd01::1/64 dev vs nodad
		ip -n s -6 addr add fd01::2/64 dev s0 nodad
		ip -n s route add default via 10.0.1.1
		ip -n s -6 route add default via fd01::1
		ip -6 neigh add fd00::2 dev va lladdr 02:00:00:00:00:02 nud permanent
		tc qdisc add dev vs clsact
		tc filter add dev vs ingress matchall action skbedit priority 1:17
		sleep 2
		cat >/tmp/send.py <<'END'
		import socket, sys
		for _ in range(10):
		    family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
		    socket.socket(family, socket.SOCK_DGRAM).sendto(b"x" * 1000, (sys.argv[1], 9))
		END
		# route NAME TO: datagrams of 1000 bytes in the class that the priority names, and in the default one.
		route() {
			tc qdisc add dev va root handle 1: htb default 99 r2q 10000
			tc class add dev va parent 1: classid 1:17 htb rate 1gbit
			tc class add dev va parent 1: classid 1:99 htb rate 1gbit
			ip netns exec s python3 /tmp/send.py "$2"
			sleep 1
			for class in 17 99; do
				tc -s class show dev va classid 1:$class | awk '/Sent/ { print int($2 / 1000) }'
			done | say "$1"
			tc qdisc del dev va root
		}
		route v4 10.0.0.2
		route v6 fd00::2
		echo 0 >/proc/sys/net/ipv4/ip_forward_update_priority
		route v4_kept 10.0.0.2
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'IPv4: datagrams in class 1:17, which skbedit named, and in the default class' "$(said v4)" '0 10'
seen 'IPv6' "$(said v6)" '10 0'
seen 'IPv4 with ip_forward_update_priority 0' "$(said v4_kept)" '10 0'
done_
