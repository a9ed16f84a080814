#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a veth does with a burst that its peer cannot take at once.
. "$(dirname "$0")/lib.sh"
finding 'veth has no back-pressure: what its peer cannot take is lost, on any kernel' \
	'with GRO on at the peer and no TSO at the sender a ring of 256 stands between them; when it is full, 6.1 drops, while 6.12.117 (as newer ones) stops the queue and the qdisc keeps the rest. Without GRO the limit is net.core.netdev_max_backlog, 1000, and all drop'
# burst SUITE KERNEL: what becomes of 2000 packets that leave a qdisc in one run.
burst() {
	guest_root "$work/$2" "$1" "$2" 'sch_plug veth' python3-minimal ethtool
	{
		veth_pair
		cat <<-'EOF'
			# A run of the qdisc may send 4096 packets before the peer's turn.
			echo 64 >/proc/sys/net/core/dev_weight_tx_bias
			cat >/tmp/send.py <<'END'
			import socket
			s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
			s.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)
			for _ in range(2000):
			    s.sendto(b"x" * 100, ("10.0.0.2", 9))
			END
			received() { ip netns exec n cat /sys/class/net/vb/statistics/rx_packets; }
			burst() {
				tc qdisc add dev va root plug limit 100000000
				r=$(received) d=$(stat tx_dropped)
				python3 /tmp/send.py
				tc qdisc change dev va root plug release_indefinite
				sleep 2
				echo "$1 received $(($(received) - r)) dropped $(($(stat tx_dropped) - d))"
				tc -s qdisc show dev va | sed -n 's/.*Sent.*requeues \([0-9]*\).*/\1/p' | say "requeues_$1"
				tc qdisc del dev va root
			}
			burst default
			ethtool -K va tso off
			ip netns exec n ethtool -K vb gro on
			burst gro
		EOF
	} >"$work/script"
	guest "$work/$2" "$work/script" >"$work/said"
	said kernel
	rm -rf "${work:?}/$2"
}
burst bookworm linux-image-6.1.0-50-amd64
seen '6.1: 2000 packets, the peer without GRO' "$(said default)" 'received 10?? dropped 99?'
seen '6.1: with GRO' "$(said gro)" 'received 25? dropped 174?'
burst trixie linux-image-6.12.117+deb13-amd64
seen '6.12: 2000 packets, the peer without GRO' "$(said default)" 'received 10?? dropped 99?'
seen '6.12: with GRO' "$(said gro)" 'received 2000 dropped 0'
seen_within 'requeues of its qdisc' "$(said requeues_gro)" 1 1000
done_
