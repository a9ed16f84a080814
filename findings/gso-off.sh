#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a qdisc is given by TCP when segmentation offload is off.
. "$(dirname "$0")/lib.sh"
finding '`ethtool -K DEV tso off gso off` makes TCP send packets of one segment, so that a shaper sees each' \
	'it makes the stack cut them after the qdisc: that is still given up to 64 KB at once, with scatter-gather off too. `ip link set DEV gso_max_segs 1` is what it takes'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'veth' python3-minimal ethtool
{
	veth_pair
	cat <<-'EOF'
		mount -t tracefs trace /sys/kernel/tracing
		cd /sys/kernel/tracing
		cat >/tmp/tcp.py <<'END'
		import socket, sys
		if sys.argv[1] == "server":
		    listener = socket.create_server(("10.0.0.2", 99))
		    while True:
		        s, _ = listener.accept()
		        while s.recv(1 << 20):
		            pass
		        s.close()
		s = socket.create_connection(("10.0.0.2", 99))
		for _ in range(40):
		    s.sendall(b"x" * 50000)
		s.shutdown(socket.SHUT_WR)
		s.recv(1)
		END
		ip netns exec n python3 /tmp/tcp.py server &
		server=$!
		sleep 2
		tc qdisc add dev va root pfifo
		# largest NAME: the largest packet that the qdisc is given, and the largest that the device is.
		largest() {
			echo >trace
			echo 1 >events/net/net_dev_queue/enable
			echo 1 >events/net/net_dev_xmit/enable
			python3 /tmp/tcp.py client
			echo 0 >events/net/enable
			for event in net_dev_queue net_dev_xmit; do
				sed -n "s/.* $event: dev=va .*len=\([0-9]*\).*/\1/p" trace | sort -n | tail -n 1 | say "$1_$event"
			done
		}
		largest on
		ethtool -K va tso off gso off
		largest off
		ethtool -K va sg off
		largest sg_off
		ethtool -K va sg on tso on gso on
		ip link set va gso_max_segs 1
		largest segs
		kill $server
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
seen_within 'largest packet at the qdisc, all on' "$(said on_net_dev_queue)" 30000 70000
seen_within 'largest packet at the device, all on' "$(said on_net_dev_xmit)" 30000 70000
seen_within 'largest at the qdisc, tso off gso off' "$(said off_net_dev_queue)" 30000 70000
seen 'largest at the device, tso off gso off' "$(said off_net_dev_xmit)" 1514
seen_within 'largest at the qdisc, sg off too' "$(said sg_off_net_dev_queue)" 30000 70000
seen 'largest at the qdisc, all on, gso_max_segs 1' "$(said segs_net_dev_queue)" 1514
done_
