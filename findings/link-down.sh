#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Where packets that wait in a qdisc go when the link goes down.
. "$(dirname "$0")/lib.sh"
finding 'packets that wait in a qdisc when its device goes down are counted as dropped, or wait on' \
	'they vanish, and no counter of the qdisc, the class or the device grows: sent + dropped + backlog is less than what came. Permanent neighbours go, too'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_htb sch_fq_codel veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		tc qdisc add dev va root handle 1: htb default 1
		tc class add dev va parent 1: classid 1:1 htb rate 8kbit 2>/dev/null
		tc qdisc add dev va parent 1:1 handle 2: fq_codel target 100s interval 200s
		cat >/tmp/send.py <<'END'
		import socket
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for _ in range(50):
		    s.sendto(b"x" * 1000, ("10.0.0.2", 9))
		END
		python3 /tmp/send.py
		# counted NAME: sent, dropped and waiting packets of each qdisc, and the device's drops.
		counted() {
			tc -s qdisc show dev va | awk '/Sent/ { sent = $4; gsub(/[^0-9]/, "", $7); dropped = $7 }
				/backlog/ { sub(/p/, "", $3); print (sent + dropped + $3), dropped, $3 }' | say "$1"
			for counter in tx_dropped tx_errors rx_dropped; do stat $counter; done | say "$1_device"
		}
		counted up
		ip neigh show dev va | grep -c PERMANENT | say neighbours_up
		ip link set va down
		counted down
		ip link set va up
		sleep 0.5
		counted again
		ip neigh show dev va | grep -c PERMANENT | say neighbours_again
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
seen 'htb and its fq_codel: sent + dropped + waiting, dropped, waiting' "$(said up)" '50 0 4? 50 0 4?'
seen 'drops and errors of the device' "$(said up_device)" '0 0 0'
seen 'the same after ip link set down' "$(said down)" '[2-9] 0 0 [2-9] 0 0'
seen 'drops and errors of the device' "$(said down_device)" '0 0 0'
seen 'after it is up again' "$(said again)" '[2-9] 0 0 [2-9] 0 0'
seen 'permanent neighbours before, after' "$(said neighbours_up) $(said neighbours_again)" '1 0'
done_
