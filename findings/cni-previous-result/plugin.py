#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A plugin of CNI that adds an interface by its own name to the result, and notes what it was told."""

import json
import os
import sys

name, command = os.path.basename(sys.argv[0]), os.environ["CNI_COMMAND"]
result = json.load(sys.stdin).get("prevResult")
with open(os.environ["NOTES"], "a") as notes:
    told = ",".join(i["name"] for i in result["interfaces"]) if result else "nothing"
    notes.write(f"{command} {name} {told}; ")
if command == "VERSION":
    print(json.dumps({"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}))
elif command == "ADD":
    if os.environ.get("FAILS") == name:
        print(json.dumps({"cniVersion": "1.0.0", "code": 999, "msg": "it fails"}))
        sys.exit(1)
    result = result or {"cniVersion": "1.0.0", "interfaces": []}
    result["interfaces"].append({"name": name})
    print(json.dumps(result))
