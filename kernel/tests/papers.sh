#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# psp accepts the tc commands of papers 000 (3.6) and 003 word for word, on a device of
# the same name.
#
#     eth0 (psp) ======= cable, 1 Gbit/s ======= c1b
. "$(dirname "$0")/lib.sh"

cable c1 1000000000 sink=1
ip link set c1a down
ip link set c1a name eth0
ip link set eth0 up

# each: runs each line of standard input as a command.
each() {
	while read -r command; do
		# shellcheck disable=SC2086 # the command's words are split on purpose
		check "$command" $command
	done
}

each <<'EOF'
tc qdisc add dev eth0 root handle 1: psp default 3
tc class add dev eth0 parent 1: classid 1:1 psp rate 500mbit
tc class add dev eth0 parent 1: classid 1:2 psp rate 250mbit
tc class add dev eth0 parent 1: classid 1:3 psp mode normal
tc qdisc add dev eth0 parent 1:1 handle 10: pfifo
tc qdisc add dev eth0 parent 1:2 handle 20: pfifo
tc qdisc add dev eth0 parent 1:3 handle 30: pfifo
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dst 192.168.2.0/24 classid 1:1
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dst 192.168.3.0/24 classid 1:2
tc -s qdisc show dev eth0
tc -s class show dev eth0
tc qdisc del dev eth0 root
EOF

each <<'EOF'
tc qdisc add dev eth0 root handle 1: psp default 2
tc class add dev eth0 parent 1: classid 1:1 psp rate 500mbit
tc class add dev eth0 parent 1: classid 1:2 psp mode 0
tc qdisc add dev eth0 parent 1:1 handle 10: pfifo
tc qdisc add dev eth0 parent 1:2 handle 20: pfifo
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dport 80 0xffff classid 1:1
tc qdisc del dev eth0 root
EOF

finish
