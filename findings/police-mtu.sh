#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Which packets a policer drops at a rate that nobody reaches.
. "$(dirname "$0")/lib.sh"
finding 'below its rate, a policer with a burst of some packets drops nothing' \
	'without mtu it drops each packet above 2 KB, so all of jumbo size, whatever rate and burst; GSO packets are measured by their segments there, but by their whole at the burst: one above the burst is never passed. Its `Sent` counts what it dropped, too'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 \
	'sch_ingress act_police cls_matchall veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		ip link set va mtu 9000
		ip -n n link set vb mtu 9000
		# send.py SIZE SEGMENT: 10 packets.
		cat >/tmp/send.py <<'END'
		import socket, sys
		size, segment = int(sys.argv[1]), int(sys.argv[2])
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		if segment:
		    s.setsockopt(socket.IPPROTO_UDP, 103, segment)
		for _ in range(10):
		    s.sendto(b"x" * size, ("10.0.0.2", 9))
		END
		# police NAME SIZE SEGMENT OPTION...: how many of 10 packets pass.
		police() {
			name=$1 size=$2 segment=$3
			shift 3
			tc qdisc add dev va clsact
			tc filter add dev va egress matchall action police "$@" conform-exceed drop
			before=$(stat tx_packets)
			python3 /tmp/send.py "$size" "$segment"
			sleep 0.2
			echo "$name $(($(stat tx_packets) - before))"
			tc -s filter show dev va egress | grep Sent | say "line_$name"
			tc qdisc del dev va clsact
		}
		police jumbo 8900 0 rate 10gbit burst 1m
		police jumbo_mtu 8900 0 rate 10gbit burst 1m mtu 9100
		police gso_1400 42000 1400 rate 10gbit burst 1m
		police gso_8900 44500 8900 rate 10gbit burst 1m
		police gso_small_burst 42000 1400 rate 10gbit burst 32k
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'rate 10gbit burst 1m: of 10 packets of 8942 bytes pass' "$(said jumbo)" 0
seen 'its counters' "$(said line_jumbo)" 'Sent * bytes 10 pkt (dropped 10,*'
seen 'with mtu 9100' "$(said jumbo_mtu)" 10
seen 'of 10 GSO packets of 42 KB, segments of 1442 bytes' "$(said gso_1400)" 10
seen 'of 10 GSO packets of 44 KB, segments of 8942 bytes' "$(said gso_8900)" 0
seen 'of 10 GSO packets of 42 KB with a burst of 32 KB' "$(said gso_small_burst)" 0
done_
