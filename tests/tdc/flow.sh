#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs pktgen through a device's qdisc; the cases call it as $FLOW.
#   flow.sh DEV COUNT [SETTING...]    sends COUNT UDP frames of 1400 bytes to port 9;
#                                     ends when the last one has gone
set -e
control=/proc/net/pktgen
dev=$1
count=$2
shift 2
echo "rem_device_all" >$control/kpktgend_0
echo "add_device $dev" >$control/kpktgend_0
for setting in "count $count" "pkt_size 1400" "delay 10000" \
	"xmit_mode queue_xmit" "dst 10.10.10.1" "src_min 10.10.10.10" \
	"src_max 10.10.10.10" "dst_mac 02:00:00:00:00:02" \
	"udp_dst_min 9" "udp_dst_max 9" "$@"; do
	echo "$setting" >$control/"$dev"
done
# pktgen counts only frames that the qdisc takes.
timeout 20 sh -c "echo start >$control/pgctrl"
echo "rem_device_all" >$control/kpktgend_0
