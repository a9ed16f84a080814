#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A client or server of aioquic: the server sends BYTES on the stream that the client opens. The server's
application, or the client that reads, pauses after AT bytes for PAUSE_S, and says so in FOLDER/truth.

peer.py client|server PORT FOLDER BYTES AT PAUSE_S"""
import asyncio
import json
import sys
import time

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived
from aioquic.quic.logger import QuicFileLogger

ROLE, PORT, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
BYTES, AT, PAUSE_S = int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6])
PIECE = 16384
WINDOW = 65536  # Of a client that pauses.


async def pause(what):
    begin = time.time()
    await asyncio.sleep(PAUSE_S)
    with open(FOLDER + "/truth", "a") as truth:
        truth.write(json.dumps({"what": what, "begin_s": begin, "end_s": time.time()}) + "\n")


class Server(QuicConnectionProtocol):
    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.end_stream:
            self.task = asyncio.ensure_future(self.answer(event.stream_id))

    async def answer(self, stream):
        sent = 0
        while sent < BYTES:
            if PAUSE_S and sent >= AT:
                await pause("response" if AT == 0 else "application")
                globals()["PAUSE_S"] = 0
            piece = min(PIECE, BYTES - sent)
            sent += piece
            self._quic.send_stream_data(stream, bytes(piece), sent == BYTES)
            self.transmit()
            while not self._quic._streams[stream].sender.buffer_is_empty:
                await asyncio.sleep(0.002)


class Client(QuicConnectionProtocol):
    received = 0

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.over = asyncio.Event()

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            self.received += len(event.data)
            if PAUSE_S and self.received >= AT and not hasattr(self, "task"):
                self.task = asyncio.ensure_future(self.pause())
            if event.end_stream:
                self.over.set()

    async def pause(self):
        # aioquic has no reader that can be slow: what gives credit gives none meanwhile.
        own = self._quic._write_stream_limits
        self._quic._write_stream_limits = lambda **_: None
        await pause("reader")
        self._quic._write_stream_limits = own
        self.transmit()


async def main():
    logger = QuicFileLogger(f"{FOLDER}/{ROLE}")
    configuration = QuicConfiguration(is_client=ROLE == "client", alpn_protocols=["corpus"], quic_logger=logger)
    if ROLE == "server":
        configuration.load_cert_chain(FOLDER + "/../cert.pem", FOLDER + "/../key.pem")
        await serve("127.0.0.1", PORT, configuration=configuration, create_protocol=Server)
        await asyncio.Event().wait()
    if PAUSE_S:
        configuration.max_stream_data = WINDOW
    configuration.load_verify_locations(FOLDER + "/../cert.pem")
    configuration.server_name = "localhost"
    async with connect("127.0.0.1", PORT, configuration=configuration, create_protocol=Client) as client:
        client._quic.send_stream_data(client._quic.get_next_available_stream_id(), b"get", True)
        client.transmit()
        await client.over.wait()


asyncio.run(main())
