#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# In which class a datagram is whose ECN mark or DSCP is given with it, as stacks of QUIC do.
. "$(dirname "$0")/lib.sh"
finding 'a socket in the class that its SO_PRIORITY names stays there when it marks single datagrams: ECT(0) in a control message is about two bits of the IP header' \
	'IP_TOS in a control message, ECT(0) too, also sets that packet'\''s priority, to 0 for ECT(0): it goes to the default class. IPV6_TCLASS leaves the priority alone, so one sender is in its class over IPv6 and not over IPv4'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_htb veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		echo 0 >/proc/sys/net/ipv6/conf/va/disable_ipv6
		ip -6 addr add fd00::1/64 dev va nodad
		ip -6 neigh add fd00::2 dev va lladdr 02:00:00:00:00:02 nud permanent
		sleep 2
		cat >/tmp/send.py <<'END'
		import socket, struct, subprocess

		def classes():
		    out = subprocess.run("tc -s class show dev va", shell=True, capture_output=True, text=True).stdout.split("class htb ")
		    return {c.split()[0]: int(c.split(" Sent ")[1].split()[0]) for c in out[1:]}

		def tell(name, family, to, control):
		    assert subprocess.call("""tc qdisc replace dev va root handle 1: htb default 99
		    tc class add dev va parent 1: classid 1:17 htb rate 1gbit
		    tc class add dev va parent 1: classid 1:99 htb rate 1gbit""", shell=True) == 0
		    s = socket.socket(family, socket.SOCK_DGRAM)
		    s.setsockopt(socket.SOL_SOCKET, 12, 0x10017)
		    for _ in range(10):
		        s.sendmsg([b"x" * 1000], control, 0, to)
		    # Without what else this device sends over IPv6.
		    print(name, *[n // 10000 for _, n in sorted(classes().items())], flush=True)
		    subprocess.call("tc qdisc del dev va root", shell=True)

		v4, v6 = (socket.AF_INET, ("10.0.0.2", 9)), (socket.AF_INET6, ("fd00::2", 9))
		tell("v4", *v4, [])
		tell("v4_ect", *v4, [(0, 1, struct.pack("B", 2))])
		tell("v4_ect_int", *v4, [(0, 1, struct.pack("i", 2))])
		tell("v6", *v6, [])
		tell("v6_ect", *v6, [(41, 67, struct.pack("i", 2))])
		END
		python3 /tmp/send.py
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
named="1 0" other="0 1"
seen 'IPv4: tens of datagrams in class 1:17, which SO_PRIORITY names, and in the default class' "$(said v4)" "$named"
seen 'IPv4 with ECT(0) in a control message of one byte' "$(said v4_ect)" "$other"
seen 'IPv4 with ECT(0) in a control message of an int' "$(said v4_ect_int)" "$other"
seen 'IPv6' "$(said v6)" "$named"
seen 'IPv6 with ECT(0) in a control message' "$(said v6_ect)" "$named"
done_
