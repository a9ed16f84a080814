# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a sender and prints in what bursts its packets arrive, by the kernel's timestamps.

usage: bursts.py PORT|DEVICE GAP COUNT SECONDS COMMAND...

It takes UDP to a port of 127.0.0.1, or frames of EtherType 0x88B5 at a device. A burst ends where nothing comes for
GAP seconds. It ends after COUNT packets, after SECONDS, or with the sender, and prints the number of packets of each burst.
"""

import socket
import struct
import subprocess
import sys
import time

SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
where, gap, count, seconds = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
if where.isdigit():
    taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taken.bind(("127.0.0.1", int(where)))
else:
    taken = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
    taken.bind((where, 0x88B5))
taken.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
taken.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
taken.settimeout(0.5)
sender = subprocess.Popen(sys.argv[5:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
end = time.monotonic() + seconds
times = []
while len(times) < count and time.monotonic() < end:
    try:
        stamp = taken.recvmsg(1 << 16, 64)[1][0][2]
    except TimeoutError:
        if sender.poll() is not None:
            break
        continue
    whole, nanoseconds = struct.unpack("qq", stamp)
    times.append(whole + nanoseconds / 1e9)
sender.terminate()
sender.wait()
bursts = [1] if times else []
for before, at in zip(times, times[1:]):
    if at - before > gap:
        bursts.append(0)
    bursts[-1] += 1
print(*bursts)
