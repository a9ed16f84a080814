#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What SO_MAX_PACING_RATE of a UDP socket bounds at fq.
. "$(dirname "$0")/lib.sh"
finding 'SO_MAX_PACING_RATE bounds what a socket sends' \
	'at fq it bounds a flow, and a UDP socket that is not connected has one for each destination: with three it sends three times the rate. A server of QUIC has one such socket for all clients'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		for i in 3 4 5; do ip neigh add 10.0.0.$i dev va lladdr 02:00:00:00:00:0$i nud permanent; done
		cat >/tmp/send.py <<'END'
		import os, socket, subprocess, time

		def send(name, connected, destinations):
		    os.system("tc qdisc replace dev va root fq initial_quantum 1514 quantum 1514")
		    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    s.setsockopt(socket.SOL_SOCKET, 47, 20000)
		    if connected:
		        s.connect(("10.0.0.3", 9))
		    begun = time.monotonic()
		    for i in range(80):
		        if connected:
		            s.send(b"x" * 958)
		        else:
		            s.sendto(b"x" * 958, (f"10.0.0.{3 + i % destinations}", 9))
		    while " 0b 0p " not in subprocess.run("tc -s qdisc show dev va", shell=True, capture_output=True, text=True).stdout:
		        time.sleep(.02)
		    print(name, round(time.monotonic() - begun, 2), flush=True)
		    os.system("tc qdisc del dev va root")

		send("connected", True, 1)
		send("one", False, 1)
		send("three", False, 3)
		END
		python3 /tmp/send.py
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen_within 'seconds for 80,000 bytes at 20,000 bytes/s, connected' "$(said connected)" 3 30
seen_within 'not connected, to one destination' "$(said one)" 3 30
seen_within 'to three destinations in turn' "$(said three)" 0.8 2.8
done_
