#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What tshark calls a segment that RACK resends, in a sender's capture that has the handshake, and in one that begins later.
. "$(dirname "$0")/lib.sh"

finding 'at the sender, a segment that is sent again is a retransmission to tshark, wherever the capture begins' \
	'4.0 calls it out of order where the capture lacks the handshake and the segment comes again within 3 ms, as after
       one duplicate ACK with SACK on a path of 1 ms; with the handshake, and in 4.4 in both, it is a retransmission'

mkdir -p "$work/captures"
cat >"$work/captures.py" <<'END'
import struct, sys
# A sender's capture, RTT 1 ms: of the last four segments the third is lost, and is sent again 0.25 ms after the SACK.
MSS = 1448

def frame(to_peer, seq, ack, flags, payload=b"", options=b""):
    ports, hosts = ((40000, 5000), (1, 2)) if to_peer else ((5000, 40000), (2, 1))
    tcp = struct.pack("!HHIIBBHHH", *ports, seq, ack, (5 + len(options) // 4) << 4, flags, 500, 0, 0) + options + payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0) + bytes([10, 0, 0, hosts[0], 10, 0, 0, hosts[1]])
    return b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\0" + ip + tcp

for name in "whole", "middle":
    with open(f"{sys.argv[1]}/{name}.pcap", "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        def put(at_us, frame):
            out.write(struct.pack("<IIII", 1_700_000_000, at_us, len(frame), len(frame)) + frame)
        if name == "whole":
            put(0, frame(True, 0, 0, 0x02, options=b"\2\4\5\xb4"))
            put(1000, frame(False, 0, 1, 0x12, options=b"\2\4\5\xb4"))
            put(1001, frame(True, 1, 1, 0x10))
        seq = 1
        for at in 2000, 4000, 7000, 10000:
            for n in range(4):
                put(at + n, frame(True, seq, 1, 0x18, b"x" * MSS))
                seq += MSS
            if at < 10000:
                put(at + 1001, frame(False, 1, seq - 2 * MSS, 0x10))
                put(at + 1003, frame(False, 1, seq, 0x10))
        # The last but one is lost: the ACK of the second, then one with SACK of the fourth.
        put(at + 1001, frame(False, 1, seq - 2 * MSS, 0x10))
        put(at + 1003, frame(False, 1, seq - 2 * MSS, 0x10, options=b"\1\1\5\12" + struct.pack("!II", seq - MSS, seq)))
        put(at + 1003 + 250, frame(True, seq - 2 * MSS, 1, 0x18, b"x" * MSS))
        put(at + 1003 + 1250, frame(False, 1, seq, 0x10))
END
python3 "$work/captures.py" "$work/captures"
for version in 4.0.17-0+deb12u3 4.4.19-0+deb13u1; do
	case $version in 4.0.*) suite=bookworm ;; *) suite=trixie ;; esac
	tree=$work/$version
	packages "$tree" $suite tshark=$version
	mkdir -p "$tree/tmp"
	cp "$work"/captures/*.pcap "$tree/tmp/"
	user "$tree" root 0
	# called CAPTURE: what the flags of the analysis say of the capture's last segment of data.
	called() {
		inside "$tree" tshark -r "/tmp/$1.pcap" -Y 'tcp.srcport == 40000 and tcp.len > 0' -T fields -e _ws.col.Info 2>/dev/null |
			tail -n 1 | sed 's/\].*/]/'
	}
	case $version in 4.0.*) middle='[[]TCP Out-Of-Order]' ;; *) middle='[[]TCP Retransmission]' ;; esac
	seen "tshark ${version%%-*}, with the handshake" "$(called whole)" '[[]TCP Retransmission]'
	seen "tshark ${version%%-*}, without" "$(called middle)" "$middle"
done
done_
