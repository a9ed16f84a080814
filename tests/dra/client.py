# SPDX-License-Identifier: MIT OR Apache-2.0
"""Calls pspacer-node by gRPC for Python, which is gRPC's C core: it names the server by the path of
the socket, percent-encoded. Messages are written by hand, as they have few fields.

usage: client.py REGISTRATION-SOCKET SERVICE-SOCKET DRIVER"""

import sys

import grpc

PATIENCE_S = 20


def field(number, value):
    """A field of a message whose length takes one byte."""
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def call(channel, method, request):
    return channel.unary_unary(method)(request, timeout=PATIENCE_S)


def expect(what, is_so, found):
    if not is_so:
        sys.exit(f"not so: {what}: found {found}")
    print("ok -", what)


def main():
    registration, service, driver = sys.argv[1:]
    with grpc.insecure_channel(f"unix:{registration}") as channel:
        info = call(channel, "/pluginregistration.Registration/GetInfo", b"")
        expect(f"grpcio {grpc.__version__} reads who it is", driver.encode() in info, info)
    claim = field(1, b"default") + field(2, b"uid-d") + field(3, b"d")
    with grpc.insecure_channel(f"unix:{service}") as channel:
        for version in ("v1", "v1beta1"):
            of = f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin"
            answer = call(channel, f"{of}/NodePrepareResources", field(1, claim))
            expect(f"asks by {version} for a claim", b"no such claim" in answer, answer)
            answer = call(channel, f"{of}/NodeUnprepareResources", field(1, claim))
            expect("and has it forgotten", answer == field(1, field(1, b"uid-d")), answer)


main()
