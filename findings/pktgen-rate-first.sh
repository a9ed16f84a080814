#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What pktgen's rate is worth when the size of packets is set after it, or varies.
. "$(dirname "$0")/lib.sh"
finding 'pktgen keeps its rate, whatever packets it sends' \
	'rate becomes a gap between packets once, by the least size that is set then. Set before pkt_size it is a gap of 0, no
       limit at all, while the result says `OK: rate=10`; a later pkt_size leaves the gap. With sizes from 125 to 1250
       bytes the gap is that of 125'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'pktgen veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		modprobe pktgen
		# generate NAME SETTING...: its gap in ns, what it said of the rate, and bit/s of what it sent.
		generate() {
			name=$1
			shift
			echo rem_device_all >/proc/net/pktgen/kpktgend_0
			echo add_device va >/proc/net/pktgen/kpktgend_0
			said=
			for setting in "count 200" "dst 10.0.0.2" "dst_mac $(ip netns exec n cat /sys/class/net/vb/address)" "$@"; do
				echo "$setting" >/proc/net/pktgen/va
				case $setting in rate*) said=$(sed -n 's/^Result: //p' /proc/net/pktgen/va) ;; esac
			done
			echo "${name}_gap $(sed -n 's/.* delay: \([0-9]*\).*/\1/p' /proc/net/pktgen/va)"
			echo "${name}_said $said"
			before=$(stat tx_bytes)
			echo start >/proc/net/pktgen/pgctrl
			sent=$(($(stat tx_bytes) - before))
			took=$(sed -n 's/^Result: OK: \([0-9]*\)(.*/\1/p' /proc/net/pktgen/va)
			echo "${name}_rate $((sent * 8 * 1000000 / took))"
		}
		generate after 'pkt_size 1250' 'rate 10M'
		generate before 'rate 10M' 'pkt_size 1250'
		generate later 'pkt_size 1250' 'rate 10M' 'pkt_size 125'
		generate sizes 'min_pkt_size 125' 'max_pkt_size 1250' 'flag TXSIZE_RND' 'rate 1M'
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
seen 'pkt_size 1250, rate 10M: gap in ns' "$(said after_gap)" 1000000
seen_within 'bit/s that it sends' "$(said after_rate)" 9000000 10400000
seen 'rate 10M, pkt_size 1250: gap in ns' "$(said before_gap)" 0
seen 'what it says' "$(said before_said)" 'OK: rate=10'
seen_within 'bit/s that it sends' "$(said before_rate)" 20000000 100000000000
seen 'pkt_size 1250, rate 10M, pkt_size 125: gap in ns' "$(said later_gap)" 1000000
seen_within 'bit/s that it sends' "$(said later_rate)" 800000 1040000
seen '125 to 1250 bytes, rate 1M: gap in ns' "$(said sizes_gap)" 1000000
seen_within 'bit/s that it sends' "$(said sizes_rate)" 4000000 7000000
done_
