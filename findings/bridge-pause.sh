#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a bridge does with frames to the address of MAC control (PAUSE, PFC), and with the priority of a VLAN tag.
. "$(dirname "$0")/lib.sh"
finding 'a bridge forwards PAUSE frames if group_fwd_mask says so, and counts those that it drops; the priority of a VLAN tag becomes the priority of the packet' \
	'group_fwd_mask refuses that bit, and the frames are counted as received by the port and as dropped by nobody. The tag'"'"'s priority is lost where the tag is taken off: a qdisc of the port sees priority 0'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_prio bridge veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		ip netns add r
		ip netns exec r sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
		for i in 1 2; do
			ip link add p$i netns r type veth peer name h$i
			ip link set h$i up
		done
		ip -n r link add br0 type bridge vlan_filtering 1 mcast_snooping 0
		for i in 1 2; do
			ip -n r link set p$i master br0
			ip -n r link set p$i up
		done
		ip -n r link set br0 up
		sleep 1
		# Priority 5 has a band of its own.
		ip netns exec r tc qdisc add dev p2 root handle 1: prio bands 3 priomap 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0
		cat >/tmp/send.py <<'END'
		import socket, sys
		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
		s.bind(("h1", 0))
		for _ in range(10):
		    s.send(bytes.fromhex(sys.argv[1] + "020000000001" + sys.argv[2]) + bytes(46))
		END
		of_port() { ip netns exec r cat "/sys/class/net/$1/statistics/$2"; }
		all() {
			for c in rx_dropped rx_errors rx_nohandler; do of_port p1 $c; of_port br0 $c; done
			ip netns exec r cat /proc/net/softnet_stat | awk '{ print $2 }'
		}
		# forwarded NAME DESTINATION REST: what of 10 frames is received by one port, sent by the other.
		forwarded() {
			r=$(of_port p1 rx_packets) t=$(of_port p2 tx_packets) drops=$(all)
			python3 /tmp/send.py "$2" "$3"
			sleep 0.3
			echo "$1 $(($(of_port p1 rx_packets) - r)) $(($(of_port p2 tx_packets) - t))"
			[ "$drops" = "$(all)" ] && echo "drops_$1 same" || echo "drops_$1 more"
		}
		for mask in 0x4000 0xfff8 0x2; do
			ip -n r link set br0 type bridge group_fwd_mask $mask 2>/dev/null && echo "mask_$mask taken" ||
				echo "mask_$mask refused"
		done
		forwarded pause 0180c2000001 88080001ffff
		forwarded lldp 0180c200000e 88cc
		forwarded tagged 020000000002 8100a00088b5
		ip netns exec r tc -s class show dev p2 | awk '/Sent/ { print $4 }' | say bands
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
seen 'group_fwd_mask 0x4000, 0xfff8, 0x2' "$(said mask_0x4000) $(said mask_0xfff8) $(said mask_0x2)" 'taken taken refused'
seen '10 PAUSE frames: received by a port, sent by the other' "$(said pause)" '10 0'
seen 'drops and errors of port, bridge and stack' "$(said drops_pause)" same
seen '10 frames of LLDP, with their bit in the mask' "$(said lldp)" '10 10'
seen '10 frames with the tag of VLAN 0, priority 5' "$(said tagged)" '10 10'
seen 'packets of the other port by band, 5 is the second' "$(said bands)" '20 0 0'
done_
