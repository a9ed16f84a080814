#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# How much nftables' limit lets pass at once.
. "$(dirname "$0")/lib.sh"
finding 'nft limit rate over 600 kbytes/minute without a burst lets some packets pass at once, as 600/minute does' \
	'a limit of bytes has a bucket of all that the rate gives in the unit that it is written in, and a burst comes on top: 10 kB
       at 10 kbytes/second, 614 kB at 600 kbytes/minute, which is the same rate. A limit of packets has its burst alone, 5
       unless another is named, whatever the unit. kbytes and mbytes are 1024 and 1024 * 1024 bytes, and more than 5.1 MB an
       hour are refused'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'nf_tables nft_limit veth' python3-minimal nftables=1.1.3-1
{
	veth_pair
	cat <<-'EOF'
		echo "nft $(nft -v)"
		cat >/tmp/send.py <<'END'
		import socket, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		passed = 0
		for _ in range(int(sys.argv[1])):
		    try:
		        passed += s.sendto(b"x" * 972, ("10.0.0.2", 9)) == 972
		    except PermissionError:
		        pass
		print(passed)
		END
		# at_once NAME COUNT LIMIT: how many of so many packets of 1000 bytes pass.
		at_once() {
			nft "add table t; add chain t c { type filter hook output priority 0; }"
			nft "add rule t c udp dport 9 limit rate over $3 drop"
			echo "$1 $(python3 /tmp/send.py "$2")"
			nft delete table t
		}
		at_once second 40 '10 kbytes/second'
		at_once burst 40 '10 kbytes/second burst 5 kbytes'
		at_once minute 1000 '600 kbytes/minute'
		at_once hour 6000 '5000 kbytes/hour'
		nft 'add table t; add chain t c; add rule t c limit rate over 5 mbytes/hour drop' 2>&1 | head -n 1 | say refused
		at_once packets 40 '1/second'
		at_once packets_minute 40 '60/minute'
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said nft
seen_within '10 kbytes/second: packets of 1000 bytes at once' "$(said second)" 10 13
seen_within '10 kbytes/second burst 5 kbytes' "$(said burst)" 15 18
seen_within '600 kbytes/minute' "$(said minute)" 614 630
seen_within '5000 kbytes/hour' "$(said hour)" 5120 5140
seen '5 mbytes/hour' "$(said refused)" '*Value too large for defined data type*'
seen_within '1/second' "$(said packets)" 5 6
seen_within '60/minute' "$(said packets_minute)" 5 6
done_
