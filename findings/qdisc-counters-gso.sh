#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a qdisc counts as a packet when the stack hands it packets of many segments (GSO).
. "$(dirname "$0")/lib.sh"
finding 'pkt, dropped, backlog and limit of a qdisc count the same packets, so dropped / (pkt + dropped) is the loss' \
	'`Sent N pkt` counts segments; dropped, backlog and limit count packets of the stack, up to 64 KB each: dropped 1 can be 30 datagrams, a limit of 5 packets holds 216 KB, and netem loses whole bursts'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_htb sch_netem veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		# 10 times 30 datagrams of 1400 bytes, in one call each.
		cat >/tmp/send.py <<'END'
		import socket
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.setsockopt(socket.SOL_SOCKET, 32, 8 << 20)
		s.setsockopt(socket.IPPROTO_UDP, 103, 1400)
		for _ in range(10):
		    s.sendto(b"x" * 42000, ("10.0.0.2", 9))
		END
		tc qdisc add dev va root handle 1: htb default 1
		tc class add dev va parent 1: classid 1:1 htb rate 1kbit burst 2k 2>/dev/null
		tc qdisc add dev va parent 1:1 handle 2: pfifo limit 5
		python3 /tmp/send.py
		tc -s qdisc show dev va | grep -A 2 pfifo | tail -n 2 | say pfifo
		echo "device $(stat tx_packets)"
		tc qdisc del dev va root
		tc qdisc add dev va root netem loss 100%
		python3 /tmp/send.py
		tc -s qdisc show dev va | tail -n 2 | say netem
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
seen '10 x 30 datagrams at a pfifo of 5 packets that is served one' "$(said pfifo)" \
	'Sent 43260 bytes 30 pkt (dropped 4, overlimits 0 requeues 0) backlog 216300b 5p requeues 0'
seen 'packets of the device' "$(said device)" 1
seen '10 x 30 datagrams at netem loss 100%' "$(said netem)" 'Sent 0 bytes 0 pkt (dropped 10,*'
done_
