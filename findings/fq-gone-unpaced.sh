#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Who paces a TCP connection after fq has been taken away.
. "$(dirname "$0")/lib.sh"
finding 'TCP paces by its own timers where there is no fq, so after fq is replaced a connection with SO_MAX_PACING_RATE (or bbr) keeps its rate' \
	'a connection that once sent through fq leaves pacing to fq for ever: under fq_codel it is not paced at all, and setting the rate again does not help. New connections pace themselves'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq sch_fq_codel veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
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
		cat >/tmp/client.py <<'END'
		import os, socket, struct, time
		RATE, BYTES = 100000, 200000

		def root(qdisc):
		    assert os.system("tc qdisc replace dev va root " + qdisc) == 0

		def connect():
		    s = socket.socket()
		    s.setsockopt(socket.SOL_SOCKET, 47, RATE)
		    s.connect(("10.0.0.2", 99))
		    return s

		def acked(s):
		    return struct.unpack_from("Q", s.getsockopt(socket.IPPROTO_TCP, 11, 200), 120)[0]

		def took(name, s):
		    begun, all_ = time.monotonic(), acked(s) + BYTES
		    s.sendall(b"x" * BYTES)
		    while acked(s) < all_:
		        time.sleep(.005)
		    print(name, round(time.monotonic() - begun, 2), flush=True)

		root("fq_codel")
		never = connect()
		took("never", never)
		root("fq")
		old = connect()
		took("at_fq", old)
		root("fq_codel")
		took("after", old)
		old.setsockopt(socket.SOL_SOCKET, 47, RATE)
		took("set_again", old)
		took("never_after", never)
		took("new", connect())
		END
		ip netns exec n python3 /tmp/server.py &
		server=$!
		while [ ! -e /tmp/ready ]; do sleep 1; done
		python3 /tmp/client.py
		kill $server
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
seen_within 'seconds for 200,000 bytes at 100,000 bytes/s: fq_codel' "$(said never)" 1.2 20
seen_within 'another connection, at fq' "$(said at_fq)" 1.2 20
seen_within 'that one, after fq was replaced by fq_codel' "$(said after)" 0 1
seen_within 'and after SO_MAX_PACING_RATE was set again' "$(said set_again)" 0 1
seen_within 'the one of before fq, idle while there was fq' "$(said never_after)" 1.2 20
seen_within 'a new one' "$(said new)" 1.2 20
done_
