# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes captures of TCP over IPv6 for findings: frames with right lengths and checksums, in pcap or pcapng."""

import socket
import struct

CLIENT = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
SERVER = socket.inet_pton(socket.AF_INET6, "2001:db8::2")
FIN, SYN, PSH, ACK = 1, 2, 8, 16


def tcp(down, seq, ack, size=0, flags=ACK, options=b"", window=1000):
    """A frame of a connection to port 80; `down` is from port 80."""
    ports = (80, 40000) if down else (40000, 80)
    addresses = SERVER + CLIENT if down else CLIENT + SERVER
    options += b"\x01" * (-len(options) % 4)
    offset = (20 + len(options)) // 4 << 12
    head = struct.pack("!HHIIHHHH", *ports, seq, ack, offset | flags, window, 0, 0) + options
    segment = head + bytes(size)
    pseudo = addresses + struct.pack("!II", len(segment), 6)
    total = sum(struct.unpack(f"!{len(pseudo + segment) // 2}H", pseudo + segment)) if size % 2 == 0 else None
    assert total is not None, "even sizes only"
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    segment = segment[:16] + struct.pack("!H", ~total & 0xFFFF) + segment[18:]
    ip = struct.pack("!IHBB", 6 << 28, len(segment), 6, 64) + addresses
    return bytes(5) + b"\x01" + bytes(5) + b"\x02" + b"\x86\xdd" + ip + segment


def sack(*blocks):
    """The option that says which segments came, besides what is acknowledged."""
    return b"\x01\x01" + struct.pack("!BB", 5, 2 + 8 * len(blocks)) + b"".join(struct.pack("!II", *b) for b in blocks)


def handshake(rtt_us):
    """Its three frames, beginning at 0, seen at the server: (time in µs, frame)."""
    wish = struct.pack("!BBHBB", 2, 4, 1440, 4, 2)
    return [
        (0, tcp(False, 1000, 0, flags=SYN, options=wish)),
        (10, tcp(True, 5000, 1001, flags=SYN | ACK, options=wish)),
        (rtt_us + 10, tcp(False, 1001, 5001)),
    ]


def pcap(path, frames, snap=262144):
    """Writes (time in µs, frame)."""
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, 1))
        for at, frame in frames:
            kept = frame[:snap]
            out.write(struct.pack("<IIII", 1700000000 + at // 1000000, at % 1000000, len(kept), len(frame)) + kept)


def block(kind, body):
    """A block of pcapng."""
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def pcapng(path, frames, options=()):
    """Writes (timestamp in units, frame) of one interface with options (code, bytes)."""
    told = b"".join(struct.pack("<HH", c, len(v)) + v + bytes(-len(v) % 4) for c, v in options)
    told += struct.pack("<HH", 0, 0) if told else b""
    with open(path, "wb") as out:
        out.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        out.write(block(1, struct.pack("<HHI", 1, 0, 262144) + told))
        for at, frame in frames:
            head = struct.pack("<IIIII", 0, at >> 32, at & 0xFFFFFFFF, len(frame), len(frame))
            out.write(block(6, head + frame))
