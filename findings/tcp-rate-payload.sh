#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Which bytes SO_MAX_PACING_RATE counts.
. "$(dirname "$0")/lib.sh"
finding 'SO_MAX_PACING_RATE is a rate of packets with their headers, the same for TCP and UDP' \
	'TCP counts its payload, fq the whole frames of UDP. With 100 bytes in a packet a TCP has more than 1.6 times the rate on the wire'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq veth' python3-minimal ethtool
{
	veth_pair
	cat <<-'EOF'
		ethtool -K va tso off gso off
		tc qdisc add dev va root fq
		cat >/tmp/server.py <<'END'
		import socket
		listener = socket.create_server(("10.0.0.2", 99))
		open("/tmp/ready", "w")
		s = listener.accept()[0]
		while s.recv(1 << 16):
		    pass
		END
		cat >/tmp/send.py <<'END'
		import socket, struct, subprocess, time
		RATE, SECONDS = 16000, 8

		def frames():
		    return [int(open("/sys/class/net/va/statistics/tx_" + what).read()) for what in ("bytes", "packets")]

		def rates(name, fill):
		    end, first = time.monotonic() + SECONDS + 1, None
		    while (now := time.monotonic()) < end:
		        fill()
		        time.sleep(.01)
		        if not first and now > end - SECONDS:
		            first, begun = frames(), now
		    bytes_, packets = (b - a for a, b in zip(first, frames()))
		    print(name + "_wire", round(bytes_ / (now - begun) / RATE, 2))
		    print(name + "_payload", round(packets * 100 / (now - begun) / RATE, 2), flush=True)

		def filler(s, data):
		    s.setblocking(False)
		    def fill():
		        try:
		            while True:
		                s.send(data)
		        except BlockingIOError:
		            pass
		    return fill

		udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		udp.setsockopt(socket.SOL_SOCKET, 47, RATE)
		udp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10000)
		subprocess.run("ip neigh add 10.0.0.3 dev va lladdr 02:00:00:00:00:03 nud permanent", shell=True)
		udp.connect(("10.0.0.3", 9))
		rates("udp", filler(udp, b"x" * 100))
		time.sleep(1)
		tcp = socket.socket()
		tcp.setsockopt(socket.SOL_SOCKET, 47, RATE)
		# 100 bytes beside the timestamps.
		tcp.setsockopt(socket.IPPROTO_TCP, 2, 112)
		tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		tcp.connect(("10.0.0.2", 99))
		rates("tcp", filler(tcp, b"x" * 1000))
		tcp.close()
		END
		ip netns exec n python3 /tmp/server.py &
		while [ ! -e /tmp/ready ]; do sleep 1; done
		python3 /tmp/send.py
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
seen_within 'UDP: frames by SO_MAX_PACING_RATE' "$(said udp_wire)" 0.6 1.1
seen_within 'UDP: payload by it' "$(said udp_payload)" 0.4 0.8
seen_within 'TCP: frames by it' "$(said tcp_wire)" 1.4 2.1
seen_within 'TCP: payload by it' "$(said tcp_payload)" 0.85 1.3
done_
