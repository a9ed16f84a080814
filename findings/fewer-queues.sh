#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Where packets that wait in a qdisc go when a device gets fewer transmit queues.
. "$(dirname "$0")/lib.sh"
finding 'when ethtool -L takes a transmit queue away, what waits in a root qdisc that is one for all queues (htb, fq, tbf) waits on, or is counted as dropped' \
	'all of it vanishes, of all classes, also for one queue of four, and no counter of the qdisc or the device grows; more queues lose nothing. Below mq only what waits at the queues that go is lost, and a qdisc that was put there is there again'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_htb sch_fq sch_fq_codel sch_tbf veth' python3-minimal ethtool
{
	veth_pair
	cat <<-'EOF'
		ip link del va
		ip link add va numtxqueues 4 numrxqueues 4 type veth peer name vb numtxqueues 4 numrxqueues 4 netns n
		ip addr add 10.0.0.1/24 dev va
		ip -n n addr add 10.0.0.2/24 dev vb
		ip -n n link set vb up
		ip link set va up
		neighbours
		cat >/tmp/send.py <<'END'
		import socket
		import sys
		one = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
		each = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(50)]
		for sender in each if sys.argv[1:] == ["each"] else one * 50:
		    sender.sendto(b"x" * 1000, ("10.0.0.2", 9))
		END
		# counted NAME: sent and dropped and waiting packets together, dropped, waiting of the root; the device's drops.
		counted() {
			tc -s qdisc show dev va root | awk '/Sent/ { sent = $4; gsub(/[^0-9]/, "", $7); dropped = $7 }
				/backlog/ { sub(/p/, "", $3); print (sent + dropped + $3), dropped, $3; exit }' | say "$1"
			for counter in tx_dropped tx_errors; do stat $counter; done | say "$1_device"
		}
		# tried NAME: what happens to 50 packets that wait there.
		tried() {
			python3 /tmp/send.py
			counted "$1_before"
			ethtool -L va tx 3
			counted "$1_fewer"
			ethtool -L va tx 4
			counted "$1_more"
			tc qdisc del dev va root 2>/dev/null
		}
		tc qdisc add dev va root handle 1: htb default 1
		tc class add dev va parent 1: classid 1:1 htb rate 8kbit 2>/dev/null
		tried htb
		tc qdisc add dev va root handle 1: fq maxrate 8kbit
		tried fq
		tc qdisc add dev va root handle 1: tbf rate 8kbit burst 2k limit 1m
		tried tbf
		tc qdisc add dev va root handle 1: mq
		for queue in 1 2 3 4; do tc qdisc add dev va parent 1:$queue handle 1$queue: tbf rate 8kbit burst 2k limit 1m; done
		# below NAME: the qdisc of each queue, and how much waits there.
		below() {
			tc -s qdisc show dev va | awk '/^qdisc tbf/ { at = $5 } /backlog/ && at { sub(/p/, "", $3); print at, $3 }' |
				sort | say "$1"
		}
		python3 /tmp/send.py each
		below mq_before
		ethtool -L va tx 2
		below mq_fewer
		ethtool -L va tx 4
		below mq_more
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
for kind in htb fq tbf; do
	seen "$kind: sent + dropped + waiting, dropped, waiting" "$(said ${kind}_before)" '50 0 4?'
	seen "the same with three queues of four" "$(said ${kind}_fewer)" '[1-4] 0 0'
	seen "the same with four again" "$(said ${kind}_more)" "$(said ${kind}_fewer)"
	seen "drops and errors of the device" "$(said ${kind}_more_device)" '0 0'
done
seen 'mq, a tbf at each queue: packets that wait' "$(said mq_before)" '1:1 *[1-9] 1:2 *[1-9] 1:3 *[1-9] 1:4 *[1-9]'
seen 'the same with two queues' "$(said mq_fewer)" '1:1 *[1-9] 1:2 *[1-9] 1:3 0 1:4 0'
seen 'the same with four again' "$(said mq_more)" '1:1 *[1-9] 1:2 *[1-9] 1:3 0 1:4 0'
done_
