# SPDX-License-Identifier: MIT OR Apache-2.0
"""Serves HTTP on a loopback of its own and prints how many kB a client took in each second, from the first byte on.

usage: unshare -n served.py SECONDS COMMAND...

http://127.0.0.1:8000/N is N bytes, also in ranges; with ?stall=S nothing comes for S seconds after 20 kB. Buffers of
sockets are small, so that what is sent is what the client has read. It ends with the client, or after SECONDS.
"""

import http.server
import re
import socket
import socketserver
import subprocess
import sys
import threading
import time

PIECE = 2000
sent = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        size = int(re.match(r"/(\d+)", self.path)[1])
        stall = re.search(r"stall=(\d+)", self.path)
        begin, end = 0, size - 1
        asked = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked:
            begin, end = int(asked[1]), int(asked[2] or end)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{end}/{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - begin + 1))
        self.end_headers()
        if self.command == "HEAD":
            return
        for at in range(begin, end + 1, PIECE):
            if stall and at == begin + 10 * PIECE:
                time.sleep(int(stall[1]))
            piece = min(PIECE, end + 1 - at)
            try:
                self.wfile.write(b"x" * piece)
            except OSError:
                return
            sent.append((time.monotonic(), piece))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 300

    def get_request(self):
        connection, peer = super().get_request()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        return connection, peer


subprocess.run(["ip", "link", "set", "lo", "mtu", "1500", "up"], check=True)
with open("/proc/sys/net/ipv4/tcp_rmem", "w") as buffers:
    buffers.write("4096 8192 16384")
server = Server(("127.0.0.1", 8000), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
try:
    client.wait(int(sys.argv[1]))
except subprocess.TimeoutExpired:
    client.kill()
    client.wait()
kilobytes = [0] * (int(sent[-1][0] - sent[0][0]) + 1) if sent else []
for at, piece in list(sent):
    kilobytes[min(int(at - sent[0][0]), len(kilobytes) - 1)] += piece / 1000
print(*map(round, kilobytes))
