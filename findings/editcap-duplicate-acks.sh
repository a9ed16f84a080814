#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What editcap takes for duplicates of a capture.
. "$(dirname "$0")/lib.sh"

finding 'editcap -d removes packets that were captured twice' \
	'it also removes duplicate ACKs that the receiver sent: over IPv6, without timestamps and SACK, they are the same
       bytes. a fast retransmission after them is no longer shown as one'

packages "$work/tree" bookworm tshark=4.0.17-0+deb12u3 wireshark-common=4.0.17-0+deb12u3
mkdir -p "$work/tree/tmp"
# The first of ten segments is lost, nine duplicate ACKs follow, and behind the third of them the repair.
python3 - "$here/captures" "$work/tree/tmp/all" <<-'EOF'
	import sys
	sys.path.insert(0, sys.argv[1])
	sys.dont_write_bytecode = True
	from frames import handshake, pcap, tcp
	sent = [(20000 + i, tcp(True, 5001 + 1440 * i, 1001, 1440)) for i in range(10)]
	acks = [(30000 + 100 * i, tcp(False, 1001, 5001)) for i in range(1, 10)]
	repair = [(30350, tcp(True, 5001, 1001, 1440)), (40400, tcp(False, 1001, 19401))]
	pcap(sys.argv[2], sorted(handshake(10000) + sent + acks + repair))
EOF
inside "$work/tree" editcap -d /tmp/all /tmp/by-number 2>/dev/null
inside "$work/tree" editcap -w 0.00005 /tmp/all /tmp/by-time 2>/dev/null
# marked NAME MARK: how many tshark marks so.
marked() { inside "$work/tree" tshark -r "/tmp/$1" -Y "tcp.analysis.$2" 2>/dev/null | wc -l; }
seen 'duplicate ACKs' "$(marked all duplicate_ack)" 9
seen 'fast retransmissions' "$(marked all fast_retransmission)" 1
seen 'duplicate ACKs after editcap -d' "$(marked by-number duplicate_ack)" 1
seen 'fast retransmissions after it' "$(marked by-number fast_retransmission)" 0
seen 'retransmissions after it' "$(marked by-number retransmission)" 1
seen 'duplicate ACKs after editcap -w 0.00005, by time' "$(marked by-time duplicate_ack)" 9
done_
