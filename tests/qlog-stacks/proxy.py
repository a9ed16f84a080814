#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Passes datagrams between a client and a server on the loopback: each is delayed, those to the client
through a line with a rate and a queue, some are lost at random, and at scripted times a direction or
both pass nothing. Writes what it did, by the clock of the machine, as lines of JSON.

proxy.py LISTEN_PORT SERVER_PORT TRUTH [--delay-ms 15] [--rate-bps 4e6] [--queue 48] [--loss 0] [--seed 1]
         [--event path|handshake|acknowledgements:BEGIN_S:LENGTH_S]
Times of events count from the client's first datagram; acknowledgements are all that comes from the client,
the handshake is the path while nothing has come.
Where the machine let a process of this PID namespace wait, this one among them, that is told as well: a
transfer on a busy machine stalls for that."""
import argparse
import glob
import heapq
import json
import random
import select
import socket
import time

LOOK_EACH_S = 0.02
STARVED_LEAST_S = 0.02
LOST_AT_RANDOM_FROM_S = 0.5  # The handshake waits seconds for what it loses.


def waited_s():
    """How long each thread has waited for a processor so far."""
    all_threads = {}
    for path in glob.glob("/proc/[0-9]*/task/*/schedstat"):
        try:
            with open(path) as file:
                all_threads[path] = int(file.read().split()[1]) / 1e9
        except (OSError, IndexError):
            pass  # It is over.
    return all_threads


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("listen", type=int)
    arguments.add_argument("server", type=int)
    arguments.add_argument("truth")
    arguments.add_argument("--delay-ms", type=float, default=15)
    arguments.add_argument("--rate-bps", type=float, default=4e6)
    arguments.add_argument("--queue", type=int, default=48)
    arguments.add_argument("--loss", type=float, default=0)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--event", action="append", default=[])
    given = arguments.parse_args()
    events = []
    for event in given.event:
        what, begin, length = event.split(":")
        events.append((what, float(begin), float(begin) + float(length)))
    truth = open(given.truth, "a", buffering=1)

    def tell(**line):
        truth.write(json.dumps(line) + "\n")

    chance = random.Random(given.seed)
    near, far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "ab")
    near.bind(("127.0.0.1", given.listen))
    far.connect(("127.0.0.1", given.server))
    near.setblocking(False)
    far.setblocking(False)
    client = first_s = reached_s = None
    free_s = 0.0  # When the line to the client is free.
    waiting = []  # Datagrams under way: time, number, socket, datagram.
    number = 0
    looked_s = time.time()
    before = waited_s()

    while True:
        now = time.time()
        if now - looked_s >= LOOK_EACH_S:
            after = waited_s()
            starved = [after[thread] - before.get(thread, 0) for thread in after]
            starved_s = max([now - looked_s - LOOK_EACH_S, *starved])
            if starved_s >= STARVED_LEAST_S:
                tell(what="starved", begin_s=now - LOOK_EACH_S - starved_s, end_s=now)
            before, looked_s = after, now
        while waiting and waiting[0][0] <= now:
            _, _, to, data = heapq.heappop(waiting)
            if to is far and reached_s is None:
                reached_s = now
                tell(what="reached", at_s=now)
            try:
                to.sendto(data, client) if to is near else to.send(data)
            except OSError:
                pass
        wait_s = min(max(waiting[0][0] - now, 0), LOOK_EACH_S) if waiting else LOOK_EACH_S
        for source in select.select([near, far], [], [], wait_s)[0]:
            while True:
                try:
                    data, address = source.recvfrom(65536)
                except OSError:
                    break
                now = time.time()
                if source is near:
                    client = address
                    if first_s is None:
                        first_s = now
                        tell(what="first", at_s=now)
                        for what, begin, end in events:
                            tell(what=what, begin_s=now + begin, end_s=now + end)
                if first_s is None:
                    continue
                since = now - first_s
                if any(begin <= since < end and (what != "acknowledgements" or source is near) for what, begin, end in events):
                    continue
                if since > LOST_AT_RANDOM_FROM_S and chance.random() < given.loss:
                    continue
                leave = now
                if source is far:
                    takes_s = len(data) * 8 / given.rate_bps
                    free_s = max(free_s, now)
                    if free_s - now > given.queue * takes_s:
                        continue
                    free_s += takes_s
                    leave = free_s
                number += 1
                to = far if source is near else near
                heapq.heappush(waiting, (leave + given.delay_ms / 1000, number, to, data))


main()
