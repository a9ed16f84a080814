#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes captures of run.sh small for crates/capture/st2110/tests/real: of each packet the RTP header, the headers of lines and
the length, of audio the time as well; of video two timestamps, of audio 200 packets. They are written by columns, each
byte as the difference from that of the packet before, which gzip makes small.

usage: small.py FOLDER-OF-CAPTURES TARGET-FOLDER NAME...
"""
import gzip
import struct
import sys

PICTURES, AUDIO_PACKETS, HEADS = 2, 200, 20


def records(data, is_audio):
    at, first_ns, stamps = 24, None, []
    while at < len(data):
        seconds, ns, kept, _ = struct.unpack("<IIII", data[at : at + 16])
        packet, at = data[at + 16 : at + 16 + kept], at + 16 + kept
        time_ns = seconds * 10**9 + ns
        first_ns = time_ns if first_ns is None else first_ns
        # Ethernet's, IP's and UDP's headers are 42 bytes.
        rtp, payload_bytes = packet[42:54], struct.unpack(">H", packet[38:40])[0] - 20
        heads = bytearray(HEADS)
        if is_audio:
            time_us = (time_ns - first_ns) // 1000
        else:
            time_us = 0
            stamps += [rtp[4:8]] if rtp[4:8] not in stamps else []
            if len(stamps) > PICTURES:
                return
            end, more = 8, packet[60] & 0x80
            while more and end + 6 <= HEADS:
                more, end = packet[54 + end + 4] & 0x80, end + 6
            heads[:end] = packet[54 : 54 + end]
        yield struct.pack(">IH", time_us, payload_bytes) + rtp + bytes(heads)


folder, target, *names = sys.argv[1:]
for name in names:
    is_audio = "-L" in name
    with open(f"{folder}/{name}.pcap", "rb") as file:
        rows = list(records(file.read(), is_audio))
    rows = rows[:AUDIO_PACKETS] if is_audio else rows
    out = bytearray(struct.pack(">I", len(rows)))
    for column in zip(*rows):
        out += bytes((byte - before) & 255 for before, byte in zip((0,) + column, column))
    with open(f"{target}/{name}.gz", "wb") as file:
        file.write(gzip.compress(bytes(out), 9, mtime=0))
