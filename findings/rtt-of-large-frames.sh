#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Round trips that tshark and tcptrace find where a sender's capture has frames larger than the MTU (TSO, GSO).
. "$(dirname "$0")/lib.sh"

finding 'each new acknowledgement gives a round trip, however large the frames of a capture at the sender are' \
	'in tshark 4.0 only those that end where a frame ends do, and in tcptrace not even that one once others came
       before it; tshark 4.4 has a round trip of each'

packages "$work/one" bookworm tshark=4.0.17-0+deb12u3 wireshark-common=4.0.17-0+deb12u3 tcptrace=6.6.7-6+b1
packages "$work/two" trixie tshark=4.4.19-0+deb13u1 wireshark-common=4.4.19-0+deb13u1
for root in one two; do
	mkdir -p "$work/$root/tmp"
	# The same 14400 bytes as one frame and as ten, and five acknowledgements of 2880 bytes each.
	python3 - "$here/captures" "$work/$root/tmp" <<-'EOF'
		import sys
		sys.path.insert(0, sys.argv[1])
		sys.dont_write_bytecode = True
		from frames import handshake, pcap, tcp
		for name, frames in (("large", 1), ("small", 10)):
		    size = 14400 // frames
		    sent = [(20000 + i, tcp(True, 5001 + size * i, 1001, size)) for i in range(frames)]
		    acks = [(30000 + 100 * i, tcp(False, 1001, 5001 + 2880 * i)) for i in range(1, 6)]
		    pcap(f"{sys.argv[2]}/{name}", handshake(10000) + sent + acks)
	EOF
done
# round_trips ROOT NAME: those of acknowledgements of data, in tshark.
round_trips() {
	inside "$work/$1" tshark -r "/tmp/$2" -Y 'tcp.analysis.ack_rtt && frame.time_relative > 0.02' \
		-T fields -e tcp.analysis.ack_rtt 2>/dev/null | tr '\n' ' '
}
seen 'tshark 4.0, ten frames' "$(round_trips one small)" '0.010099000 0.010197000 0.010295000 0.010393000 0.010491000 '
seen 'tshark 4.0, one large frame' "$(round_trips one large)" '0.010500000 '
seen 'tshark 4.4, one large frame' "$(round_trips two large)" \
	'0.010100000 0.010200000 0.010300000 0.010400000 0.010500000 '
# One more is that of the SYN.
samples() { inside "$work/one" tcptrace -lrn "/tmp/$1" 2>/dev/null | awk '/RTT samples:/ { print $NF }'; }
seen 'tcptrace, ten frames' "$(samples small)" 6
seen 'tcptrace, one large frame' "$(samples large)" 1
done_
