#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Whether a full netem blocks a local sender of UDP.
. "$(dirname "$0")/lib.sh"
finding 'a sender of UDP is blocked when its socket'\''s buffer is full of packets that wait in a qdisc: netem with a rate and tbf with that rate lose nothing' \
	'netem with a rate or a delay takes packets from their socket'\''s account when they come, so the sender never waits: it fills netem in no time, and what netem'\''s limit does not hold is lost'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_netem sch_tbf sch_fq veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		cat >/tmp/send.py <<'END'
		import os, socket, subprocess, time
		for name, qdisc in ("tbf", "tbf rate 1mbit burst 20k limit 400k"), ("netem", "netem rate 1mbit limit 200"), \
		        ("delay", "netem delay 20s limit 200"), ("fq", "fq maxrate 1mbit flow_limit 200"):
		    os.system("tc qdisc add dev va root " + qdisc)
		    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    s.connect(("10.0.0.2", 9))
		    for _ in range(400):
		        try:
		            s.send(b"x" * 1400)
		        except ConnectionRefusedError:
		            pass
		    print(name, subprocess.run("tc -s qdisc show dev va", shell=True, capture_output=True, text=True).stdout
		          .split("dropped ")[1].split(",")[0], flush=True)
		    os.system("tc qdisc del dev va root")
		END
		python3 /tmp/send.py
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'tbf of 1 Mbit/s: datagrams of 400 that are dropped' "$(said tbf)" 0
seen 'fq with maxrate 1 Mbit/s, room for 200' "$(said fq)" 0
seen_within 'netem rate 1mbit, room for 200' "$(said netem)" 50 200
seen_within 'netem delay 20s, room for 200' "$(said delay)" 150 200
done_
