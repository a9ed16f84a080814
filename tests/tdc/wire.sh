#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Makes a cable of the laboratory (lab/wire) in this namespace; the cases call it as $WIRE.
#   wire.sh create NAME RATE_BPS [KEY=VALUE...]    devices NAMEa and NAMEb, up
#   wire.sh fault NAME KEY=VALUE...
#   wire.sh delete NAME
set -e
control=/sys/kernel/debug/wire
# `ip netns exec` mounts a /sys of its own.
[ -d $control ] || mount -t debugfs debugfs /sys/kernel/debug
verb=$1
name=$2
if [ "$verb" = delete ]; then
	echo "name=$name" >$control/delete
	exit
fi
if [ "$verb" = fault ]; then
	shift 2
	echo "$*" >$control/$name/fault
	exit
fi
rate=$3
shift 3
echo "name=$name a=${name}a b=${name}b rate_bps=$rate $*" >$control/create
ip link set "${name}a" up
ip link set "${name}b" up
