#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What is left of nanoseconds where a capture is filtered, cut or converted.
. "$(dirname "$0")/lib.sh"

finding 'a capture in nanoseconds that is filtered by tcpdump -r FILE -w FILE, cut by tcpslice, changed by tcprewrite or converted
       by editcap keeps its times' \
	'all of these write microseconds, cut and not rounded, and say nothing: tcpdump unless it has --time-stamp-precision nano,
       editcap and mergecap with -F pcap, the format whose name one knows, and not nsecpcap. Gaps of packets are wrong by up to a
       microsecond: eight full packets at 100 Gbit/s'

packages "$work/tree" trixie tcpdump=4.99.5-2 tshark=4.4.19-0+deb13u1 wireshark-common=4.4.19-0+deb13u1 tcpslice=1.8-1 \
	tcpreplay=4.5.1-1
mkdir -p "$work/tree/tmp"
# Packets at a distance of 1777 ns.
python3 - "$here/captures" "$work/tree/tmp/ns" <<-'END'
	import struct, sys
	sys.path.insert(0, sys.argv[1])
	sys.dont_write_bytecode = True
	from frames import tcp
	with open(sys.argv[2], "wb") as out:
	    out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
	    for i in range(4):
	        frame = tcp(True, 5001 + 100 * i, 1001, 100)
	        out.write(struct.pack("<IIII", 1700000000, 1777 * (i + 1), len(frame), len(frame)) + frame)
END
inside "$work/tree" editcap /tmp/ns /tmp/ns.pcapng
# left: what nanoseconds the file that was written has.
left() {
	inside "$work/tree" tshark -r /tmp/out -T fields -e frame.time_epoch 2>/dev/null | sed 's/.*\.00000*//' | tr '\n' ' '
	rm -f "$work/tree/tmp/out"
}
kept='1777 3554 5331 7108 ' lost='1000 3000 5000 7000 '
for file in ns ns.pcapng; do
	inside "$work/tree" tcpdump -Z root -r /tmp/$file -w /tmp/out tcp 2>/dev/null
	seen "$file, tcpdump -r -w" "$(left)" "$lost"
	inside "$work/tree" tcpdump -Z root --time-stamp-precision nano -r /tmp/$file -w /tmp/out tcp 2>/dev/null
	seen "$file, with --time-stamp-precision nano" "$(left)" "$kept"
	for format in pcap:lost nsecpcap:kept pcapng:kept; do
		eval "is=\$${format#*:}"
		inside "$work/tree" editcap -F "${format%:*}" /tmp/$file /tmp/out
		# shellcheck disable=SC2154
		seen "$file, editcap -F ${format%:*}" "$(left)" "$is"
		inside "$work/tree" mergecap -F "${format%:*}" -w /tmp/out /tmp/$file
		seen "$file, mergecap -F ${format%:*}" "$(left)" "$is"
	done
done
inside "$work/tree" tcpslice -w /tmp/out /tmp/ns
seen 'tcpslice' "$(left)" "$lost"
inside "$work/tree" tcprewrite --infile=/tmp/ns --outfile=/tmp/out --ttl=60
seen 'tcprewrite' "$(left)" "$lost"
done_
