#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What tshark's bytes in flight are where a receiver acknowledges selectively.
. "$(dirname "$0")/lib.sh"

finding 'tcp.analysis.bytes_in_flight is what was sent beyond the cumulative acknowledgement, whatever SACK says' \
	'it leaves out what SACK names: of the same packets with and without the option it shows a tenth'

packages "$work/tree" bookworm tshark=4.0.17-0+deb12u3 wireshark-common=4.0.17-0+deb12u3
mkdir -p "$work/tree/tmp"
# The first of ten segments is lost, the other nine are acknowledged one by one; then the repair, and a new segment.
python3 - "$here/captures" "$work/tree/tmp" <<-'EOF'
	import sys
	sys.path.insert(0, sys.argv[1])
	sys.dont_write_bytecode = True
	from frames import handshake, pcap, sack, tcp
	sent = [(20000 + i, tcp(True, 5001 + 1440 * i, 1001, 1440)) for i in range(10)]
	more = [(40000, tcp(True, 5001, 1001, 1440)), (40001, tcp(True, 19401, 1001, 1440))]
	for name, option in (("with", lambda i: sack((6441, 6441 + 1440 * i))), ("without", lambda i: b"")):
	    acks = [(30000 + 100 * i, tcp(False, 1001, 5001, options=option(i))) for i in range(1, 10)]
	    pcap(f"{sys.argv[2]}/{name}", handshake(10000) + sent + acks + more)
EOF
in_flight() {
	inside "$work/tree" tshark -r "/tmp/$1" -Y 'tcp.len > 0' -T fields -e tcp.analysis.bytes_in_flight 2>/dev/null |
		tail -n 3 | tr '\n' ' '
}
seen 'tenth segment, repair, new segment without SACK' "$(in_flight without)" '14400 14400 15840 '
seen 'the same with SACK' "$(in_flight with)" '14400 1440 2880 '
done_
