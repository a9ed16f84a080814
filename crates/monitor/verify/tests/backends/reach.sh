#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Random frames leave by random rules, by each backend.
#
#   test program --> c1a ==== 1 Gbit/s ==== c1b (sink)
#
# usage: reach.sh BACKEND...

. "$(dirname "$0")/lib.sh"

cable c1 1000000000 sink=1
ip link set c1a mtu 1500
for backend; do
	BACKEND=$backend $PROGRAM >/tmp/said 2>&1 && status=0 || status=$?
	output=$(cat /tmp/said)
	echo "$output" | sed -n 's/^.*FRAMES/FRAMES/p'
	check "$backend: each frame is counted by the class that the matcher names" [ $status = 0 ]
	[ $status = 0 ] || tail -n 40 /tmp/said
done
finish
