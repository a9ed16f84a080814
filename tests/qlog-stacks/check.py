#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares what `pspacer stalls` finds in the qlogs of a case with what was done to it (FOLDER/truth), and
prints a line of the table for each truth and each stall without one.

check.py PSPACER STACK CASE FOLDER
What happened while the machine let a process wait for a processor is not judged.
Exit status: 3 if there is such a thing in the case; 1 if a truth or a stall of 300 ms or more has no counterpart,
the log of the end that sends never has the right cause of a truth, or a verdict is wrong with more than low
confidence."""
import glob
import json
import os
import subprocess
import sys

LEAST_S = 0.3
# What in the truth is the first packet of an end's log.
BEGINS = {"server": "reached", "client": "first"}
# A truth's times are of the machine's clock, a stall's count from the first packet of its log.
NEAR_S = 0.1
# What a truth has left, an acknowledgement that is missing or a timer of twice the time, may stall the transfer once more.
AFTER_S = 0.5
# A stall of which the machine is to blame for so much is the machine's.
STARVED_SHARE = 0.2
# What is right by the log of the end that sends the data, and by that of the end that receives it: a receiver's
# log shows that nothing came, and seldom why. If all data had come when the path fell silent, and no probe was
# due before its end, it lost acknowledgements alone.
RIGHT = {
    "path": (["silent-path", "ack-loss"], ["silent-path", "unknown"]),
    "handshake": ([], ["silent-path", "rto-tail", "tail-loss-probe"]),
    "acknowledgements": (["silent-path", "ack-loss"], ["silent-path", "ack-loss", "unknown"]),
    "application": (["application"], ["application", "unknown"]),
    "response": (["response-time"], ["response-time"]),
    "reader": (["receiver-window-closed"], ["receiver-window-closed"]),
}


def first_packet_s(path, name):
    """Time of a log's first packet of this name, from its first event."""
    with open(path) as log:
        text = log.read().replace("\x1e", "")
    try:
        events = json.loads(text)["traces"][0]["events"]
    except json.JSONDecodeError:
        # The last line of a log that was cut short is none.
        lines = [line for line in text.splitlines() if line.endswith("}")]
        events = [event for event in map(json.loads, lines) if "time" in event]
    at = next(event["time"] for event in events if event["name"].endswith(name))
    return (at - events[0]["time"]) / 1000


def matches(truth, stall):
    """Whether they overlap by half of the shorter, or the stall begins meanwhile or soon after: timers back off."""
    if truth["begin_s"] <= stall["start_s"] <= truth["end_s"] + AFTER_S:
        return True
    overlap = min(truth["end_s"], stall["end_s"]) - max(truth["begin_s"], stall["start_s"])
    shorter = min(truth["end_s"] - truth["begin_s"], stall["duration_s"])
    return overlap > shorter / 2 - NEAR_S and overlap > 0


def overlap_s(truth, begin_s, end_s):
    return max(min(truth["end_s"], end_s) - max(truth["begin_s"], begin_s), 0)


def main():
    pspacer, stack, case, folder = sys.argv[1:5]
    with open(folder + "/truth") as lines:
        truths = [json.loads(line) for line in lines]
    known = {end: [t["at_s"] for t in truths if t["what"] == what] for end, what in BEGINS.items()}
    if not all(known.values()):
        print(f"{folder}/truth: expected a datagram in each direction", file=sys.stderr)
        sys.exit(1)
    starved = [truth for truth in truths if truth["what"] == "starved"]
    truths = [truth for truth in truths if truth["what"] in RIGHT]
    is_bad = is_starved = False

    def line(end, truth, stall, verdict):
        said = "-"
        if stall:
            said = f"{stall['cause']}, {stall['side']} | {stall['confidence']} | {stall['duration_s'] * 1000:.0f} ms"
        else:
            said = "- | - | -"
        was = f"{truth['what']} {1000 * (truth['end_s'] - truth['begin_s']):.0f} ms" if truth else "-"
        print(f"| {stack} | {case} | {end} | {was} | {said} | {verdict} |", flush=True)

    for end in ["server", "client"]:
        logs = sorted(glob.glob(f"{folder}/{end}/*"), key=os.path.getsize)
        if not logs:
            print(f"{folder}/{end}: expected a qlog", file=sys.stderr)
            is_bad = True
            continue
        found = subprocess.run([pspacer, "stalls", logs[-1], "--json", "--all"], capture_output=True, text=True, check=False)
        if found.returncode != 0:
            print(f"{logs[-1]}: pspacer: {found.stderr.strip()}", file=sys.stderr)
            is_bad = True
            continue
        found = json.loads(found.stdout)
        for note in found["notes"]:
            print(note, file=sys.stderr)
        is_server = end == "server"
        zero_s = known[end][0] - first_packet_s(logs[-1], "packet_received" if is_server else "packet_sent")
        stalls = [stall for connection in found["connections"] for stall in connection["stalls"]]
        for stall in stalls:
            stall["start_s"] += zero_s
            stall["end_s"] = stall["start_s"] + stall["duration_s"]
        long = [stall for stall in stalls if stall["duration_s"] >= LEAST_S]
        for stall in stalls:
            begin_s, end_s = stall["start_s"] - AFTER_S, stall["end_s"]
            share = sum(overlap_s(of, begin_s, end_s) for of in starved) / stall["duration_s"]
            stall["is_starved"] = share > STARVED_SHARE
        seen = [truth for truth in truths if truth["end_s"] > zero_s]
        for truth in seen:
            of = [stall for stall in stalls if matches(truth, stall)]
            if not of:
                is_long = truth["end_s"] - truth["begin_s"] >= LEAST_S
                is_bad |= is_long
                line(end, truth, None, "missed")
            right = RIGHT[truth["what"]][0 if is_server else 1]
            # The end that sends the data can know it.
            if is_server and of and not any(stall["cause"] in right or stall["is_starved"] for stall in of):
                is_bad = True
            for stall in of:
                is_right = stall["cause"] in right
                if stall["is_starved"] and not is_right:
                    is_starved = True
                    line(end, truth, stall, "starved")
                    continue
                is_bad |= not is_right and stall["confidence"] != "low"
                line(end, truth, stall, "right" if is_right else "wrong")
        for stall in long:
            if not any(matches(truth, stall) for truth in seen):
                is_starved |= stall["is_starved"]
                is_bad |= not stall["is_starved"]
                line(end, None, stall, "starved" if stall["is_starved"] else "false")
        if not seen and not long:
            line(end, None, None, "right")
    sys.exit(1 if is_bad else 3 if is_starved else 0)


main()
