# SPDX-License-Identifier: MIT OR Apache-2.0
"""Starts a server of HTTP on a loopback of its own, reads a file of it over some connections, and prints what came when.

usage: unshare -n reads.py CONNECTIONS SECONDS COMMAND...

http://127.0.0.1:8000/file is read, by each connection 0.27 s after the one before it. A line is a piece of what was
read without 20 ms of waiting: when it began, in ms of the wall clock's second, its seconds, its connection, and its kB.
"""

import socket
import subprocess
import sys
import threading
import time

WAIT_S = 0.02
pieces = []


def read(connection, until):
    time.sleep(0.27 * connection)
    with socket.create_connection(("127.0.0.1", 8000)) as stream:
        stream.sendall(b"GET /file HTTP/1.1\r\nHost: finding\r\nConnection: close\r\n\r\n")
        last = 0
        while time.time() < until:
            got = len(stream.recv(1 << 20))
            now = time.time()
            if not got:
                break
            if now - last > WAIT_S:
                pieces.append([now, connection, 0])
                mine = pieces[-1]
            mine[2] += got
            last = now


connections, seconds = int(sys.argv[1]), float(sys.argv[2])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", 8000)).close()
            break
        except OSError:
            time.sleep(0.1)
    begun = time.time()
    readers = [threading.Thread(target=read, args=(n, begun + seconds)) for n in range(connections)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(seconds + 5)
finally:
    server.terminate()
    server.wait(10)
for at, connection, size in sorted(pieces):
    print(f"{at % 1 * 1000:.0f} {at - begun:.2f} {connection} {size / 1000:.0f}")
