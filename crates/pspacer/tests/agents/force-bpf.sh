#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# force.sh in a guest without the module: the agents put reservations into force by qdiscs of BPF.

backend=bpf
. /agents/force.sh
