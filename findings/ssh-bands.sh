#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# In which bands of pfifo_fast and prio ssh's logins and its transfers are.
. "$(dirname "$0")/lib.sh"

finding 'logins by ssh go before, and scp, sftp and rsync behind all else in pfifo_fast and prio, whose bands follow the type of service' \
	'so it was in Debian 12. ssh 10 of Debian 13 (by ssh -G) marks logins ef and transfers cs1, which the kernel has no bands for: both are in the
       middle one with everything else, and a rule that takes cs1 for what was marked by hand takes each transfer'

packages "$work/12" bookworm openssh-client=1:9.2p1-2+deb12u10
packages "$work/13" trixie openssh-client=1:10.0p1-7+deb13u4
map=$(unshare --net sh -c 'ip link set lo up && tc qdisc add dev lo root pfifo_fast && tc qdisc show dev lo' 2>/dev/null |
	sed -n 's/.*priomap *//p' | tr -s ' ' | sed 's/ *$//')
seen 'the default priomap' "$map" '1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1'
# bands ROOT: what the client would mark a login and a transfer with, and the band of each: by the priority that a socket
# has of this kernel with that type of service, and that map.
bands() {
	user "$1" root 0
	inside "$1" ssh -G example.org 2>/dev/null | sed -n 's/^ipqos //p' | python3 -c '
import socket, sys
tos = {"lowdelay": 0x10, "throughput": 0x08, "ef": 0xb8, "cs1": 0x20}
band = sys.argv[1].split()
said = []
for mark in input().split():
    with socket.socket() as s:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos[mark])
        said.append("%s: band %s" % (mark, band[s.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY)]))
print(", ".join(said))' "$map"
}
seen 'Debian 12' "$(bands "$work/12")" 'lowdelay: band 0, throughput: band 2'
seen 'Debian 13' "$(bands "$work/13")" 'ef: band 1, cs1: band 1'
done_
