#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# In which band of pfifo_fast and prio a socket's DSCP puts its packets.
. "$(dirname "$0")/lib.sh"
finding 'bands do not look at a DSCP, or a more important DSCP is in a better band' \
	'IP_TOS sets the priority by the TOS bits of 1992, which are the low bits of the DSCP: AF41 (video) is in the last band, behind bulk traffic, its AF42, which is to be dropped earlier, in the first; EF and CS6 are best effort. It overwrites an SO_PRIORITY that was set before. IPv6 does none of it'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_prio veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		tc qdisc add dev va root handle 1: prio
		cat >/tmp/send.py <<'END'
		import socket, subprocess
		PRIORITY, OPT, TOS, TCLASS = 12, socket.SOL_SOCKET, 1, 67

		def bands():
		    text = subprocess.run("tc -s class show dev va", shell=True, capture_output=True, text=True).stdout
		    return [int(line.split()[3]) for line in text.splitlines() if line.startswith(" Sent")]

		def band(setup, dscp):
		    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    setup(s, dscp << 2)
		    before = bands()
		    s.sendto(b"x", ("10.0.0.2", 9))
		    return [b - a for a, b in zip(before, bands())].index(1)

		def tos(s, value):
		    s.setsockopt(socket.IPPROTO_IP, TOS, value)

		def priority_then_tos(s, value):
		    s.setsockopt(OPT, PRIORITY, 6)
		    tos(s, value)

		def tos_then_priority(s, value):
		    tos(s, value)
		    s.setsockopt(OPT, PRIORITY, 6)

		names = dict(CS0=0, CS1=8, AF11=10, AF21=18, AF31=26, AF41=34, AF42=36, AF43=38, EF=46, CS6=48)
		for name, dscp in names.items():
		    print(name, band(tos, dscp))
		print("priority_then_af41", band(priority_then_tos, 34))
		print("af41_then_priority", band(tos_then_priority, 34))
		s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
		s.setsockopt(41, TCLASS, 34 << 2)
		print("v6", s.getsockopt(OPT, PRIORITY))
		END
		python3 /tmp/send.py
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
for name in AF41 AF31 AF21 AF11; do
	seen "band of $name (0 is the first)" "$(said $name)" 2
done
for name in CS0 CS1 EF CS6 AF43; do
	seen "band of $name" "$(said $name)" 1
done
seen 'band of AF42' "$(said AF42)" 0
seen 'band with SO_PRIORITY 6, then AF41' "$(said priority_then_af41)" 2
seen 'band with AF41, then SO_PRIORITY 6' "$(said af41_then_priority)" 0
seen 'SO_PRIORITY of an IPv6 socket with AF41' "$(said v6)" 0
done_
