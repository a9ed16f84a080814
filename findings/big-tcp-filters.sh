#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What capture filters and tools make of BIG TCP: packets above 64 KB, as a sender's host captures them.
. "$(dirname "$0")/lib.sh"

finding 'the filter tcp chooses the packets of BIG TCP, too, and tools count their bytes' \
	'over IPv6 they have a hop-by-hop header with their length, which the filter does not look behind: tcp and port choose
       none of them, ip6[6] == 0 does. tcptrace traces no packet of IPv4 whose length is 0, and counts no bytes of those of
       IPv6; softflowd has one flow without ports. tshark has all'

mkdir -p "$work/captures"
cat >"$work/captures.py" <<'END'
import struct, sys
# 20 packets of 100,000 bytes each, of which 128 were kept.
SIZE, COUNT = 100_000, 20
four, six = (bytes([10, 0, 0, n]) for n in (1, 2)), (b"\xfd" + bytes(14) + bytes([n]) for n in (1, 2))
four, six = b"".join(four), b"".join(six)
for name in ("four", "six"):
    with open(f"{sys.argv[1]}/{name}.pcap", "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1))
        for n in range(COUNT):
            if name == "four":
                ip = b"\x08\0" + struct.pack("!BBHHHBBH", 0x45, 0, 0, n, 0x4000, 64, 6, 0) + four
            else:
                option = struct.pack("!BBBBI", 6, 0, 0xC2, 4, 8 + 20 + SIZE)
                ip = b"\x86\xdd" + struct.pack("!IHBB", 0x60000000, 0, 0, 64) + six + option
            tcp = struct.pack("!HHIIBBHHH", 40000, 5000, 1 + n * SIZE, 1, 0x50, 0x10, 64, 0, 0)
            frame = b"\2\0\0\0\0\2\2\0\0\0\0\1" + ip + tcp
            kept = (frame + bytes(128))[:128]
            out.write(struct.pack("<IIII", 1_700_000_000, n * 1000, len(kept), len(frame) + SIZE) + kept)
END
python3 "$work/captures.py" "$work/captures"
# reads ROOT: gives it the captures, and the user that programs become.
reads() {
	mkdir -p "$1/tmp" "$1/var/run"
	cp "$work"/captures/*.pcap "$1/tmp/"
	user "$1" root 0
}
for version in 4.99.3-1 4.99.5-2; do
	case $version in 4.99.3*) suite=bookworm ;; *) suite=trixie ;; esac
	packages "$work/$version" $suite tcpdump=$version
	reads "$work/$version"
	# chosen CAPTURE FILTER: how many of 20.
	chosen() { inside "$work/$version" tcpdump -Z root -n -r "/tmp/$1.pcap" "$2" 2>/dev/null | wc -l; }
	seen "tcpdump $version, IPv4, tcp and port 5000" "$(chosen four tcp) $(chosen four 'port 5000')" '20 20'
	seen "tcpdump $version, IPv6, tcp and port 5000" "$(chosen six tcp) $(chosen six 'port 5000')" '0 0'
	seen "tcpdump $version, IPv6, tcp or ip6[6] == 0" "$(chosen six 'tcp or ip6[6] == 0')" 20
done
tree=$work/tools
packages "$tree" trixie tcptrace=6.6.7-6+b2 softflowd=1.1.1-1 tshark=4.4.19-0+deb13u1
reads "$tree"
traced() { inside "$tree" tcptrace -l -n "/tmp/$1.pcap" 2>/dev/null; }
seen 'tcptrace, IPv4' "$(traced four | grep -c 'no traced TCP packets')" 1
seen 'tcptrace, IPv6: packets and bytes' "$(traced six | awk '/^ *total packets: .*total/ { print $3 } /actual data bytes:/ { print $4 }' | tr '\n' ' ')" '20 0 '
flow() {
	unshare -n sh -c "ip link set lo up && chroot $tree softflowd -D -r /tmp/six.pcap -n 127.0.0.1:9999" 2>&1 | sed -n 's/.*\(\[fd.*octets>:[0-9]*\).*/\1/p'
}
seen 'softflowd, IPv6' "$(flow)" '[[]fd00::2[]]:0 proto:0 octets>:2001360'
bytes() { inside "$tree" tshark -r "/tmp/$1.pcap" -T fields -e tcp.len 2>/dev/null | awk '{ sum += $1 } END { print sum }'; }
seen 'tshark, bytes of IPv4 and IPv6' "$(bytes four) $(bytes six)" '2000000 2000000'
done_
