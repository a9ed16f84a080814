#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# How long tcpreplay takes for a capture, at the capture's own times and at a rate.
. "$(dirname "$0")/lib.sh"

finding 'tcpreplay takes as long as the capture took, and --mbps counts what the packets had on the wire' \
	'at the times of the capture (no option, or --multiplier=1) each packet waits for the gap to the one before it, and how late
       that one was is never made up for: on an idle host 3 s became 3.02 to 3.06 and 2 s in steps of 0.1 ms 2.08 to 2.15, on a busy one 3.2 to 3.5 and 2.4 to 2.6; a rate (--pps,
       --mbps) is kept. 4.5.1 waits for nothing with --timer=select. --mbps counts the bytes that were captured: a capture that
       was cut to 100 bytes goes out as packets of 100 bytes, ten times as many a second, without a warning'

cat >"$work/captures.py" <<'END'
import struct, sys
# NAME, captured bytes, bytes, packets, gap in ns: UDP from 10.0.0.1, in nanoseconds.
for name, captured, size, packets, gap_ns in (("whole", 1000, 1000, 3000, 10**6), ("cut", 100, 1000, 3000, 10**6), ("dense", 100, 100, 20000, 10**5)):
    with open(f"{sys.argv[1]}/{name}.pcap", "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for n in range(packets):
            ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, size - 14, n & 65535, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
            frame = b"\xff" * 6 + b"\x02\0\0\0\0\1\x08\0" + ip + struct.pack("!HHHH", 1000, 5000, size - 34, 0) + bytes(size)
            at = 1_700_000_000 * 10**9 + n * gap_ns
            out.write(struct.pack("<IIII", *divmod(at, 10**9), captured, size) + frame[:captured])
END
for version in 4.4.3-1 4.5.1-1; do
	case $version in
	4.4*) suite=bookworm select='3.005 6' ;;
	*) suite=trixie select='0.01 1' ;;
	esac
	tree=$work/$version
	packages "$tree" $suite tcpreplay=$version
	devices "$tree"
	mkdir -p "$tree/tmp"
	python3 "$work/captures.py" "$tree/tmp"
	# took OPTION... CAPTURE: seconds, as tcpreplay says.
	took() {
		unshare -n sh -c 'ip link add va type veth peer name vb && ip link set va up && ip link set vb up && exec "$@"' sh \
			timeout 30 chroot "$tree" tcpreplay -i va "$@" 2>&1 | sed -n 's/^Actual: .* sent in \([0-9.]*\) seconds$/\1/p'
	}
	seen_within "$version, 3 s of a packet each ms at its own times" "$(took /tmp/whole.pcap)" 3.005 6
	seen_within "$version, 2 s of a packet each 0.1 ms at its own times" "$(took /tmp/dense.pcap)" 2.03 6
	seen_within "$version, 2 s of a packet each 0.1 ms with --mbps=8" "$(took --mbps=8 /tmp/dense.pcap)" 1.99 2.02
	seen_within "$version, 3 s with --mbps=8, as they had on the wire" "$(took --mbps=8 /tmp/whole.pcap)" 2.99 3.02
	seen_within "$version, the same, cut to 100 bytes" "$(took --mbps=8 /tmp/cut.pcap)" 0.28 0.33
	# shellcheck disable=SC2086
	seen_within "$version, 3 s with --timer=select" "$(took --timer=select /tmp/whole.pcap)" $select
done
done_
