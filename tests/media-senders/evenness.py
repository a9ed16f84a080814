#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Computes how even the audio of a capture is, in fractions and by EBU Tech 3337 alone: the verdict that run.sh compares.

usage: evenness.py CAPTURE SAMPLES-A-SECOND
"""
import collections
import fractions
import struct
import sys

with open(sys.argv[1], "rb") as file:
    data = file.read()
hz, at, packets = int(sys.argv[2]), 24, []
while at < len(data):
    seconds, ns, kept, _ = struct.unpack("<IIII", data[at : at + 16])
    packet, at = data[at + 16 : at + 16 + kept], at + 16 + kept
    packets.append((fractions.Fraction(seconds * 10**9 + ns, 10**9), *struct.unpack(">HI", packet[44:50])))
steps = collections.Counter((b[2] - a[2]) % 2**32 for a, b in zip(packets, packets[1:]))
packet_time = fractions.Fraction(steps.most_common(1)[0][0], hz)
first, worst, window = packets[0], fractions.Fraction(0), []
for time, _, timestamp in packets:
    if window and time - window[0][0] > fractions.Fraction(1, 5):
        window = []
    ticks = (timestamp - first[2] + 2**31) % 2**32 - 2**31
    window.append((time, time - first[0] - fractions.Fraction(ticks, hz)))
    delays = [delay for _, delay in window]
    worst = max(worst, max(delays) - min(delays))
if worst <= packet_time:
    print("within a packet time")
else:
    print("within 17 packet times" if worst < 17 * packet_time else "beyond")
