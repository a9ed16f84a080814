# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a node_exporter in a folder with the textfile collector alone, and prints the samples of one scrape.

usage: unshare -n scrape.py ROOT FILE=TEXT...
"""

import fcntl
import pathlib
import socket
import struct
import subprocess
import sys
import time
import urllib.request

root = pathlib.Path(sys.argv[1])
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 0x49))
folder = root / "text"
folder.mkdir(exist_ok=True)
for old in folder.iterdir():
    old.unlink()
for given in sys.argv[2:]:
    name, text = given.split("=", 1)
    (folder / name).write_text(text)
options = ["--collector.disable-defaults", "--collector.textfile", "--collector.textfile.directory=/text"]
options += ["--web.listen-address=127.0.0.1:9100", "--web.disable-exporter-metrics"]
program = subprocess.Popen(
    ["chroot", root, "/usr/bin/prometheus-node-exporter", *options], stderr=subprocess.DEVNULL
)
try:
    for _ in range(100):
        try:
            answer = urllib.request.urlopen("http://127.0.0.1:9100/metrics")
            break
        except OSError:
            time.sleep(0.1)
    lines = answer.read().decode().splitlines()
    types = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE"))
    kept = [line for line in lines if line.startswith(("m_", "node_textfile_scrape_error"))]
    print(answer.status, *(line.replace("node_textfile_scrape_error", "error") for line in kept), sep=", ", end="")
    print(",", *sorted(f"{n}: {t}" for n, t in types.items() if n.startswith("m_")))
finally:
    program.kill()
    program.wait()
