#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a policer of packets a second lets through at first.
. "$(dirname "$0")/lib.sh"
finding 'a policer of packets has a full bucket of pkts_burst at first, as one of bytes has' \
	'it begins empty: after it was added it drops all but what its rate has earned since. A packet is one of the stack: 30 datagrams of one call count once'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 \
	'sch_ingress act_police cls_matchall veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		# send.py COUNT SIZE SEGMENT
		cat >/tmp/send.py <<'END'
		import socket, sys
		count, size, segment = map(int, sys.argv[1:])
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		if segment:
		    s.setsockopt(socket.IPPROTO_UDP, 103, segment)
		for _ in range(count):
		    s.sendto(b"x" * size, ("10.0.0.2", 9))
		END
		# pass NAME ...: what passes of what send.py sends.
		pass() {
			name=$1
			shift
			before=$(stat tx_packets)
			python3 /tmp/send.py "$@"
			sleep 0.2
			echo "$name $(($(stat tx_packets) - before))"
		}
		tc qdisc add dev va clsact
		tc filter add dev va egress matchall action police rate 8kbit burst 100k mtu 64k conform-exceed drop
		pass bytes 20 1000 0
		tc qdisc del dev va clsact
		tc qdisc add dev va clsact
		tc filter add dev va egress matchall action police pkts_rate 1 pkts_burst 100 conform-exceed drop
		pass new 20 1000 0
		sleep 30
		pass later 20 1000 0
		pass gso 5 42000 1400
		tc -s filter show dev va egress | grep Sent | say line
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'rate 8kbit burst 100k, new: of 20 packets of 1 KB pass' "$(said bytes)" 20
seen_within 'pkts_rate 1 pkts_burst 100, new: of 20 pass' "$(said new)" 0 5
seen '30 s later' "$(said later)" 20
seen 'of 5 packets of 30 segments pass' "$(said gso)" 5
seen 'the counters' "$(said line)" 'Sent * bytes 190 pkt (dropped *'
done_
