#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Which options of a listening socket its connections have, and in which class they are.
. "$(dirname "$0")/lib.sh"
finding 'an accepted connection has the socket options of its listener: SO_PRIORITY like SO_MARK, SO_MAX_PACING_RATE and IP_TOS' \
	'all but SO_PRIORITY, which is 0 again. Only the SYN-ACK is in the class that the listener named. With IP_TOS the packets have the DSCP, and not the priority that belongs to it'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_htb veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		tc qdisc add dev va root handle 1: htb default 99
		tc class add dev va parent 1: classid 1:17 htb rate 1gbit
		tc class add dev va parent 1: classid 1:99 htb rate 1gbit
		cat >/tmp/client.py <<'END'
		import socket
		s = socket.create_connection(("10.0.0.1", 99))
		while s.recv(1 << 16):
		    pass
		END
		cat >/tmp/server.py <<'END'
		import socket, subprocess
		SOL = socket.SOL_SOCKET

		def options(s):
		    print(name, hex(s.getsockopt(SOL, 12)), s.getsockopt(SOL, 36), s.getsockopt(SOL, 47), s.getsockopt(0, 1))

		def classes():
		    out = subprocess.run("tc -s class show dev va", shell=True, capture_output=True, text=True).stdout.split("class htb ")
		    return {c.split()[0]: int(c.split(" Sent ")[1].split()[2]) for c in out[1:]}

		for tos in False, True:
		    listener = socket.socket()
		    listener.setsockopt(SOL, socket.SO_REUSEADDR, 1)
		    if tos:
		        listener.setsockopt(0, 1, 0x10)
		    else:
		        listener.setsockopt(SOL, 12, 0x10017)
		    listener.setsockopt(SOL, 36, 5)
		    listener.setsockopt(SOL, 47, 5000000)
		    listener.bind(("10.0.0.1", 99))
		    listener.listen()
		    before = classes()
		    client = subprocess.Popen(["ip", "netns", "exec", "n", "python3", "/tmp/client.py"])
		    s = listener.accept()[0]
		    name = "listener_tos" if tos else "listener"
		    options(listener)
		    name = "accepted_tos" if tos else "accepted"
		    options(s)
		    s.sendall(b"x" * 100000)
		    s.close()
		    client.wait()
		    after = classes()
		    if not tos:
		        print("named", after["1:17"] - before["1:17"])
		        print("default", after["1:99"] - before["1:99"])
		    listener.close()
		END
		python3 /tmp/server.py
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'listener: SO_PRIORITY, SO_MARK, SO_MAX_PACING_RATE, IP_TOS' "$(said listener)" '0x10017 5 5000000 0'
seen 'its connection' "$(said accepted)" '0x0 5 5000000 0'
seen 'packets of the connection in class 1:17, which SO_PRIORITY names' "$(said named)" 1
seen_within 'and in the default class' "$(said default)" 3 1000
seen 'listener with IP_TOS 0x10' "$(said listener_tos)" '0x6 5 5000000 16'
seen 'its connection' "$(said accepted_tos)" '0x0 5 5000000 16'
done_
