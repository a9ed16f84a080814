# SPDX-License-Identifier: MIT OR Apache-2.0
"""Accepts connections of gRPC at a socket, and prints the name of the server that each first request has.

usage: server.py PATH COUNT
"""

import socket
import sys

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS = 1

listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("ready", flush=True)
for _ in range(int(sys.argv[2])):
    connection, _ = listener.accept()
    connection.settimeout(20)
    connection.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))  # SETTINGS, of which there are none
    stream = connection.makefile("rb")
    assert stream.read(len(PREFACE)) == PREFACE
    while True:
        head = stream.read(9)
        body = stream.read(int.from_bytes(head[:3], "big"))
        if head[3] == HEADERS:
            print(dict(hpack.Decoder().decode(body))[":authority"], flush=True)
            break
    stream.close()
    connection.close()
