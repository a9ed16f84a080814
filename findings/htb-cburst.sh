#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a burst of htb does in a class without a ceil.
. "$(dirname "$0")/lib.sh"
finding 'a class of htb with `rate R burst B` sends B at once after it was idle' \
	'without ceil the ceil is the rate, whose own bucket is cburst, 1600 bytes by default: two packets go, and the burst does nothing. `burst B cburst B` does'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_htb veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		cat >/tmp/send.py <<'END'
		import socket
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.setsockopt(socket.SOL_SOCKET, 32, 8 << 20)
		for _ in range(100):
		    s.sendto(b"x" * 1372, ("10.0.0.2", 9))
		END
		# passes NAME OPTION...: how many of 100 packets of 1414 bytes pass in half a second.
		passes() {
			tc qdisc add dev va root handle 1: htb default 1
			name=$1
			shift
			tc class add dev va parent 1: classid 1:1 htb "$@" 2>/dev/null
			before=$(stat tx_packets)
			python3 /tmp/send.py
			sleep 0.5
			echo "$name $(($(stat tx_packets) - before))"
			tc class show dev va | say "class_$name"
			tc qdisc del dev va root
		}
		passes none rate 8kbit
		passes burst rate 8kbit burst 100k
		passes ceil rate 8kbit burst 100k ceil 16kbit
		passes both rate 8kbit burst 100k cburst 100k
		passes cburst rate 8kbit cburst 100k
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
# Two: the bucket is full, and may go below zero once.
seen_within 'packets at once with rate alone' "$(said none)" 2 3
seen_within 'with burst 100k' "$(said burst)" 2 3
seen_within 'with burst 100k and twice the rate as ceil' "$(said ceil)" 2 3
seen_within 'with burst 100k and cburst 100k (102400 bytes)' "$(said both)" 72 74
seen_within 'with cburst 100k' "$(said cburst)" 2 3
done_
