#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Runs chain.cc and chain.toml.in side by side and writes a page of what came of it."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# The queue of r1 towards r2: the rate of its line, and its qdisc. A queue of 100 packets of 1500 bytes.
QUEUES = {
    "fifo": ("100mbit", "pfifo limit 100"),
    "tbf": ("1gbit", "tbf rate 100mbit burst 3000b limit 151400b"),
    "fqcodel": ("100mbit", "fq_codel"),
}
FLOWS = [1, 10, 100]
# More connections take the laboratory many minutes.
LABORATORY_FLOWS = 10
SECONDS = 5
NS3, SIMULATOR, LABORATORY = "ns-3", "simulator", "laboratory"


def scenario(flows, congestion, queue, seconds):
    rate, qdisc = QUEUES[queue]
    text = (HERE / "chain.toml.in").read_text()
    for key, value in {"@SECONDS@": seconds, "@RATE@": rate, "@QDISC@": qdisc}.items():
        text = text.replace(key, str(value))
    for flow in range(flows):
        text += (
            f'[[flow]]\nname = "f{flow}"\ntype = "tcp"\nfrom = "tx"\nto = "rx"\nwindow = "4mb"\n'
            f'congestion = "{congestion}"\nstart = "{flow}ms"\nsample = "1s"\n'
        )
    return text + '[[window]]\nname = "all"\n'


def timed(command):
    """Runs a command: its output, seconds of processor, and the most memory it had, MiB."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]}: {errors.decode(errors='replace')}")
    return out, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def ns3(args, flows, congestion, queue):
    out, cpu_s, mib = timed([args.ns3, str(flows), congestion, queue, str(args.seconds)])
    found = json.loads(out)
    return found["goodput_bps"], found["dropped"], found["hops"], cpu_s, mib


def ours(args, engine, flows, congestion, queue):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "chain.toml"
        file.write_text(scenario(flows, congestion, queue, args.seconds))
        out = pathlib.Path(folder) / "out"
        command = [args.pspacer, engine, "run", file, "--out", out, "--quiet"]
        _, cpu_s, mib = timed([str(word) for word in command])
        cell = json.loads((out / "result.json").read_text())["cells"][0]
        run = json.loads((out / "run.json").read_text())
    flow_results = cell["windows"][0]["flows"]
    goodput = sum(f.get("goodput_bps", 0) for f in flow_results if f["name"].startswith("f"))
    if engine == "sim":
        dropped = sum(report["refused"] for report in cell["flow_reports"].values())
    else:
        dropped = sum(qdisc.get("drops", 0) for qdisc in cell["tc"]["r1"])
    return goodput, dropped, run.get("packet_hops"), cpu_s, mib


def least(runs):
    """Of several runs that agree, the one of least processor time."""
    if any(run[:3] != runs[0][:3] for run in runs):
        sys.exit(f"runs differ: {runs}")
    return min(runs, key=lambda run: run[3])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ["--ns3", "--pspacer", "--version", "--out"]:
        parser.add_argument(name, required=True)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--lab", action="store_true", help="the laboratory, too: minutes")
    args = parser.parse_args()
    rows, speeds = [], []
    for queue in QUEUES:
        for congestion in ["reno", "cubic"]:
            for flows in FLOWS:
                ask = flows, congestion, queue
                both = {NS3: [], SIMULATOR: []}
                for _ in range(args.runs):
                    both[NS3].append(ns3(args, *ask))
                    both[SIMULATOR].append(ours(args, "sim", *ask))
                found = {name: least(runs) for name, runs in both.items()}
                if args.lab and flows <= LABORATORY_FLOWS:
                    found[LABORATORY] = ours(args, "lab", *ask)
                rows.append((ask, found))
                print(ask, found, file=sys.stderr)
    lines = []
    for (flows, congestion, queue), found in rows:
        def of(name, index, form):
            return form.format(found[name][index]) if name in found else "–"

        cells = [queue, congestion, str(flows)]
        for name in [NS3, SIMULATOR, LABORATORY]:
            goodput = f"{found[name][0] / 1e6:.1f}" if name in found else "–"
            cells += [goodput, of(name, 1, "{:,}")]
        per_s = {name: found[name][2] / found[name][3] for name in [NS3, SIMULATOR]}
        for name, speed in per_s.items():
            cells += [f"{speed / 1e6:.2f}", f"{found[name][4]:.0f}"]
        speeds.append(per_s[SIMULATOR] / per_s[NS3])
        cells.append(f"{speeds[-1]:.1f}")
        lines.append("| " + " | ".join(cells) + " |")
    # Pages have another licence than what makes this one.
    licence = "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->"
    head = "\n".join([licence, *(HERE / "page.md.in").read_text().splitlines()[1:]]) + "\n"
    for key, value in {
        "@VERSION@": args.version,
        "@SECONDS@": args.seconds,
        "@LEAST@": f"{min(speeds):.1f}",
        "@MOST@": f"{max(speeds):.1f}",
        "@ROWS@": "\n".join(lines),
    }.items():
        head = head.replace(key, str(value))
    pathlib.Path(args.out).write_text(head)


if __name__ == "__main__":
    main()
