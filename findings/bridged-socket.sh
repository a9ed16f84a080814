#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What the host's qdisc knows of a sender in a container behind a bridge.
. "$(dirname "$0")/lib.sh"
finding 'a packet that has crossed a veth has no socket any more: a shaper of the host drops what a container sends too fast' \
	'behind a bridge the packet keeps its socket: the host'\''s full shaper blocks the sender inside the container and nothing is lost, and an fq of the host takes over the pacing of the container'\''s TCP, which is unpaced when that fq goes. Where the host routes, packets have no socket and are dropped'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_tbf sch_fq sch_fq_codel veth bridge' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		ip addr del 10.0.0.1/24 dev va
		ip link add br0 type bridge
		ip link set br0 up
		ip link set va master br0
		for i in 1 2; do
			ip netns add c$i
			ip link add h$i type veth peer name i$i netns c$i
			ip link set h$i up
			ip -n c$i link set i$i up
		done
		ip link set h1 master br0
		ip addr add 10.0.0.254/24 dev br0
		ip -n n neigh flush dev vb
		ip -n n route add default via 10.0.0.254
		ip -n c1 addr add 10.0.0.1/24 dev i1
		ip addr add 10.7.0.1/24 dev h2
		ip -n c2 addr add 10.7.0.2/24 dev i2
		ip -n c2 route add default via 10.7.0.1
		echo 1 >/proc/sys/net/ipv4/ip_forward
		cat >/tmp/server.py <<'END'
		import socket, threading
		listener = socket.create_server(("10.0.0.2", 99))
		open("/tmp/ready", "w")
		def read(s):
		    while s.recv(1 << 16):
		        pass
		while True:
		    threading.Thread(target=read, args=(listener.accept()[0],), daemon=True).start()
		END
		cat >/tmp/send.py <<'END'
		import os, socket, struct, subprocess, sys, time
		host = os.open("/run/netns/host", os.O_RDONLY)
		inside = os.open("/proc/self/ns/net", os.O_RDONLY)

		def tc(arguments):
		    # In the host's network namespace.
		    os.setns(host)
		    out = subprocess.run("tc " + arguments, shell=True, capture_output=True, text=True).stdout
		    os.setns(inside)
		    return out

		def acked(s):
		    return struct.unpack_from("Q", s.getsockopt(socket.IPPROTO_TCP, 11, 200), 120)[0]

		def took(s, n=200000):
		    begun, all_ = time.monotonic(), acked(s) + n
		    s.sendall(b"x" * n)
		    while acked(s) < all_:
		        time.sleep(.005)
		    return round(time.monotonic() - begun, 2)

		name = sys.argv[1]
		t = socket.socket()
		t.setsockopt(socket.SOL_SOCKET, 47, 100000)
		t.connect(("10.0.0.2", 99))
		tc("qdisc replace dev va root fq")
		print(name + "_at_fq", took(t))
		tc("qdisc replace dev va root fq_codel")
		print(name + "_after", took(t))
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.connect(("10.0.0.2", 9))
		tc("qdisc replace dev va root tbf rate 1mbit burst 20k limit 200k")
		for _ in range(300):
		    try:
		        s.send(b"x" * 1400)
		    except ConnectionRefusedError:
		        pass
		time.sleep(1)
		print(name + "_dropped", tc("-s qdisc show dev va").split("dropped ")[1].split(",")[0], flush=True)
		tc("qdisc del dev va root")
		END
		touch /run/netns/host
		mount --bind /proc/self/ns/net /run/netns/host
		ip netns exec n python3 /tmp/server.py &
		server=$!
		while [ ! -e /tmp/ready ]; do sleep 1; done
		ip netns exec c1 python3 /tmp/send.py bridged
		ip netns exec c2 python3 /tmp/send.py routed
		kill $server
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'behind a bridge: datagrams of 300 that the host'\''s tbf of 1 Mbit/s drops' "$(said bridged_dropped)" 0
seen_within 'routed by the host: dropped' "$(said routed_dropped)" 20 300
seen_within 'behind a bridge: seconds for 200,000 bytes of TCP at 100,000 bytes/s, fq at the host' "$(said bridged_at_fq)" 1.2 20
seen_within 'behind a bridge: after fq was replaced by fq_codel' "$(said bridged_after)" 0 1
seen_within 'routed: fq at the host' "$(said routed_at_fq)" 1.2 20
seen_within 'routed: after fq was replaced' "$(said routed_after)" 1.2 20
done_
