#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# At what distances trafgen of netsniff-ng sends when it is given a rate.
. "$(dirname "$0")/lib.sh"

finding 'trafgen --rate 100pps sends a packet each 10 ms' \
	'it sends the packets of a whole second at once, waits for the second to end, and begins again, with a rate in bits,
       too: a shaper or a queue behind it gets bursts of one second. -t 10ms waits after each packet'

for version in 0.6.8-3 0.6.9-1; do
	case $version in 0.6.8*) suite=bookworm ;; *) suite=trixie ;; esac
	packages "$work/$version" $suite "netsniff-ng=$version"
	inside "$work/$version" /usr/sbin/trafgen --version >/dev/null 2>&1 || :
	# An Ethernet frame of 100 bytes.
	echo '{ 0x02,0,0,0,0,2, 0x02,0,0,0,0,1, 0x88,0xb5, fill(0x41,86) }' >"$work/$version/tmp/frame"
	# bursts OPTION...: how many of 250 frames arrive together, where nothing comes for 0.2 s in between.
	bursts() {
		unshare -n sh -c '
			tree=$1 bursts=$2
			shift 2
			ip link add va type veth peer name vb
			ip link set va up
			ip link set vb up
			exec python3 "$bursts" vb 0.2 250 30 chroot "$tree" /usr/sbin/trafgen --dev va --conf /tmp/frame -P 1 \
				--num 250 --no-sock-mem "$@"
		' - "$work/$version" "$here/senders/bursts.py" "$@"
	}
	seen "$version, --rate 100pps: frames together" "$(bursts --rate 100pps)" '100 100 50'
	seen "$version, --rate 80kbit: frames together" "$(bursts --rate 80kbit)" '100 100 50'
done
done_
