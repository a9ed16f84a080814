#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What fq still delays when it is told not to pace.
. "$(dirname "$0")/lib.sh"
finding 'fq with nopacing delays nothing' \
	'it ignores rates that sockets and maxrate ask for, and keeps launch times: those of SO_TXTIME and so of BPF programs too'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		ip neigh add 10.0.0.3 dev va lladdr 02:00:00:00:00:03 nud permanent
		cat >/tmp/send.py <<'END'
		import os, socket, struct, subprocess, time

		def waiting():
		    return subprocess.run("tc -s qdisc show dev va", shell=True, capture_output=True, text=True).stdout.split("backlog ")[1].split()[1]

		for option in "pacing", "nopacing":
		    os.system("tc qdisc add dev va root fq maxrate 8kbit initial_quantum 256 quantum 256 " + option)
		    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    s.connect(("10.0.0.3", 9))
		    for _ in range(10):
		        s.send(b"x" * 1000)
		    print(option + "_rate", waiting())
		    os.system("tc qdisc del dev va root")
		    os.system("tc qdisc add dev va root fq " + option)
		    s.setsockopt(socket.SOL_SOCKET, 61, struct.pack("iI", time.CLOCK_MONOTONIC, 0))
		    s.sendmsg([b"x"], [(socket.SOL_SOCKET, 61, struct.pack("Q", time.monotonic_ns() + 4 * 10**9))])
		    time.sleep(1)
		    early = waiting()
		    time.sleep(5)
		    print(option + "_time", early, waiting(), flush=True)
		    os.system("tc qdisc del dev va root")
		END
		python3 /tmp/send.py
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'pacing, maxrate 8 kbit/s: packets of 10 that wait' "$(said pacing_rate)" '[89]p'
seen 'pacing, launch time 4 s ahead: packets that wait after 1 and 6 s' "$(said pacing_time)" '1p 0p'
seen 'nopacing, maxrate 8 kbit/s: packets that wait' "$(said nopacing_rate)" 0p
seen 'nopacing, launch time 4 s ahead: after 1 and 6 s' "$(said nopacing_time)" '1p 0p'
done_
