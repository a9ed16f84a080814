# SPDX-License-Identifier: MIT OR Apache-2.0
"""Calls a method that nobody has. usage: client.py TARGET"""

import sys

import grpc

with grpc.insecure_channel(sys.argv[1]) as channel:
    try:
        channel.unary_unary("/a.B/C")(b"", timeout=20)
    except grpc.RpcError:
        pass
