# SPDX-License-Identifier: MIT OR Apache-2.0
"""Asks etcd's JSON gateway. usage: ask.py PORT PATH JSON [SECONDS], JSON may be - for standard input

Prints the status and the answer without its header. With SECONDS the answer is a stream: prints what came by then,
one message a line, and "open" or "ended". In JSON, "@text" stands for text in base64.
"""

import base64
import json
import re
import sys
import time
import urllib.error
import urllib.request


def bare(value):
    if isinstance(value, dict):
        return {k: bare(v) for k, v in sorted(value.items()) if k != "header"}
    return [bare(v) for v in value] if isinstance(value, list) else value


port, path, text = sys.argv[1:4]
if text == "-":
    text = sys.stdin.read()
text = re.sub(r'"@([^"]*)"', lambda m: '"' + base64.b64encode(m[1].encode()).decode() + '"', text)
request = urllib.request.Request(f"http://127.0.0.1:{port}/v3/{path}", text.encode())
limit = float(sys.argv[4]) if len(sys.argv) > 4 else None
begun = time.monotonic()
try:
    answer = urllib.request.urlopen(request, timeout=limit or 60)
except urllib.error.HTTPError as error:
    answer = error
except TimeoutError:
    print("open")
    sys.exit()
if limit is None:
    body = answer.read()
    try:
        body = json.dumps(bare(json.loads(body)), separators=(",", ":"))
    except ValueError:
        body = body.decode().strip()
    print(answer.status, body)
    sys.exit()
print(answer.status)
try:
    while line := answer.readline():
        print(json.dumps(bare(json.loads(line)), separators=(",", ":")), flush=True)
        if time.monotonic() - begun > limit:
            break
    else:
        print("ended")
        sys.exit()
except TimeoutError:
    pass
print("open")
