#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What times readers in Python take from a pcapng whose interfaces differ in their resolution.
. "$(dirname "$0")/lib.sh"

finding 'readers of pcapng take the resolution of timestamps from the interface that a packet is of' \
	'dpkt takes that of the first interface for all: where mergecap has merged a capture in microseconds with one in
       nanoseconds, the times of the second are wrong by a factor of 1000, without an error. scapy and python-pcapng
       read them as tshark does'

packages "$work/tree" trixie tshark=4.4.19-0+deb13u1 wireshark-common=4.4.19-0+deb13u1
python dpkt==1.9.8 scapy==2.8.0 python-pcapng==2.1.1
mkdir -p "$work/tree/tmp"
# Two packets in µs, at 0 and 1 ms, and two in ns, at 0.5 and 1.5 ms.
python3 - "$here/captures" "$work/tree/tmp" <<-'END'
	import struct, sys
	sys.path.insert(0, sys.argv[1])
	sys.dont_write_bytecode = True
	from frames import pcap, tcp
	frames = [tcp(True, 5001 + 100 * i, 1001, 100) for i in range(2)]
	pcap(sys.argv[2] + "/us", [(1000 * i, frame) for i, frame in enumerate(frames)])
	with open(sys.argv[2] + "/ns", "wb") as out:
	    out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
	    for i, frame in enumerate(frames):
	        out.write(struct.pack("<IIII", 1700000000, 1000000 * i + 500000, len(frame), len(frame)) + frame)
END
cat >"$work/read.py" <<'END'
import logging, sys
reader, path = sys.argv[1:]
logging.disable()
if reader == "dpkt":
    import dpkt
    times = [t for t, _ in dpkt.pcapng.Reader(open(path, "rb"))]
elif reader == "scapy":
    from scapy.utils import rdpcap
    times = [p.time for p in rdpcap(path)]
else:
    from pcapng import FileScanner
    times = [b.timestamp for b in FileScanner(open(path, "rb")) if hasattr(b, "timestamp")]
print(*(f"{float(t):.4f}" for t in times))
END
right='1700000000.0000 1700000000.0005 1700000000.0010 1700000000.0015'
for order in 'us ns' 'ns us'; do
	# shellcheck disable=SC2086
	set -- $order
	inside "$work/tree" mergecap -w "/tmp/$1-$2" "/tmp/$1" "/tmp/$2" 2>/dev/null
	seen "$1 and $2, tshark" "$(inside "$work/tree" tshark -r "/tmp/$1-$2" -T fields -e frame.time_epoch 2>/dev/null |
		sed 's/\(\.....\).*/\1/' | tr '\n' ' ')" "$right "
	seen "$1 and $2, scapy" "$("$python" "$work/read.py" scapy "$work/tree/tmp/$1-$2")" "$right"
	seen "$1 and $2, python-pcapng" "$("$python" "$work/read.py" pcapng "$work/tree/tmp/$1-$2")" "$right"
	case $1 in
	us) wrong='1700000000.0000 1700000000000.5000 1700000000.0010 1700000000001.5000' ;;
	*) wrong='1700000.0000 1700000000.0005 1700000.0000 1700000000.0015' ;;
	esac
	seen "$1 and $2, dpkt" "$("$python" "$work/read.py" dpkt "$work/tree/tmp/$1-$2")" "$wrong"
done
done_
