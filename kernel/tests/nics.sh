#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# psp runs on the drivers of real NICs. QEMU emulates them: a hub joins two of each, and
# they send as fast as the CPU makes frames, not at line rate. The test checks what holds
# on any NIC: psp loads, sends, and survives changes of the link and the removal of the
# device. Where the hub is faster than the line, psp finds that out and changes to its
# timer. A bridge and a veth pair behind the far device show who sees gap frames: no hardware
# takes them out here.
#
#   psp, near --hub-- far, sw (bridge), p0 --veth-- p1
#
# /tests/tap DEVICE prints what a packet socket saw.

. "$(dirname "$0")/lib.sh"

# nic DRIVER: sets $near and $far to the driver's two devices.
nic() {
	near=
	far=
	for device in /sys/class/net/*; do
		[ -e "$device/device/driver" ] || continue
		case $(cat "$device/address") in
		*:01) end=near ;;
		*) end=far ;;
		esac
		# The network device of virtio is a child of the PCI device.
		found=$(readlink "$device/device/driver")
		[ "${found##*/}" = "$1" ] || continue
		eval "$end=${device##*/}"
	done
	[ -n "$near" ] && [ -n "$far" ]
}

linked() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" = 1 ] && return
		sleep 0.25
	done
	echo "$1 has no link"
	return 1
}

sent() { cat "/sys/class/net/$near/statistics/tx_packets"; }

# fresh RATE OPTION...: makes a new psp on $near with one class.
fresh() {
	rate=$1
	shift
	tc qdisc del dev "$near" root 2>/dev/null || :
	tc qdisc add dev "$near" root handle 1: psp default 1 "$@" &&
		tc class add dev "$near" parent 1: classid 1:1 psp rate "$rate"
}

statistic() { cat "/sys/class/net/$1/statistics/$2"; }

# seen DEVICE: prints how many gap frames its tap saw.
seen() { sed -n 's/^gaps //p' "/tmp/$1"; }

ip link add sw type bridge
ip link add p0 type veth peer name p1
ip link set p0 master sw
for device in sw p0 p1; do ip link set $device up; done

# gaps_seen DRIVER LINE-MBIT KIND: who sees the gap frames of psp, which finds that the hub is no
# clock by them, and 20 others.
gaps_seen() {
	frames="$1, gap $3"
	tc qdisc del dev "$near" root
	ip link set "$far" master sw
	sent=$(statistic "$near" tx_packets)
	got=$(statistic "$far" rx_packets)
	multicast=$(statistic "$far" multicast)
	behind=$(statistic p1 rx_packets)
	taps=
	for device in "$near" "$far" sw p1; do
		/tests/tap "$device" >"/tmp/$device" &
		taps="$taps $!"
	done
	sleep 0.2
	fresh "$(($2 / 10))mbit" mode gap gap "$3"
	# Nobody has that address: a switch floods it.
	flow "$near" "count 20" "delay 0" "skb_priority 65537" "dst_mac 02:00:00:00:77:77"
	flow_done
	drained "$near"
	sleep 0.2
	# shellcheck disable=SC2086 # a list
	kill $taps
	wait
	ip link set "$far" nomaster
	gaps=$(stat_of "$near" gap_frames)
	behind=$(($(statistic p1 rx_packets) - behind))
	echo "# $frames: $gaps gap frames; the sender's tap sees $(seen "$near");" 		"the switch's port counts $(($(statistic "$far" rx_packets) - got)) frames, as multicast" 		"$(($(statistic "$far" multicast) - multicast)), its tap sees $(seen "$far") gap frames"
	check "$frames: there are gap frames" at_least 100 "$gaps"
	check "$frames: the sender's tap sees each" same "$gaps" "$(seen "$near")"
	check "$frames: the sender's device counts each" at_least $((gaps + 20)) \
		$(($(statistic "$near" tx_packets) - sent))
	check "$frames: the bridge hands none to its host" same 0 "$(seen sw)"
	check "$frames: the next port gets the others" at_least 20 "$behind"
	check "$frames: the next port gets no gap frame" same 0 "$(seen p1)"
}

# of DRIVER LINE-MBIT: tests a driver whose emulated device reports that line rate.
of() {
	driver=$1
	line=$2
	# check would run nic in a subshell, which would lose the names.
	nic "$driver" || :
	check "$driver: there are two" [ -n "$near" -a -n "$far" ]
	[ -n "$near" ] && [ -n "$far" ] || return 0
	ip link set "$near" up
	ip link set "$far" up
	check "$driver: the near one has a link" linked "$near"
	check "$driver: the far one has a link" linked "$far"

	check "$driver: psp loads" fresh 20mbit
	# The hub takes frames in no time: the wire does not prove itself a clock.
	check "$driver: auto is timer" same timer "$(stat_of "$near" mode_in_force)"
	check "$driver: the line rate is the driver's" same "$line" \
		"$(($(tc -s -j qdisc show dev "$near" root |
		      json_of line_in_force_bps) / 1000000))"
	before=$(sent)
	flow "$near" "count 200" "delay 0" "skb_priority 65537"
	flow_done
	check "$driver: the queue is empty in the end" drained "$near"
	check "$driver: every frame was given to the device" at_least 200 $(($(sent) - before))

	gaps_seen "$driver" "$line" multicast
	gaps_seen "$driver" "$line" pause

	# The rates are so high that the wire is filled without a wait.
	check "$driver: mode gap" fresh "$((line * 2 / 5))mbit" mode gap
	flow "$near" "delay 0" "skb_priority 65537"
	# A guest whose time is skipped while QEMU's threads wait for each other may see a trial take
	# half as long as on the line, which proves nothing: psp tries again 1, 2 and 4 s later.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		proved "$near" && break
	done
	tc -s qdisc show dev "$near" root | sed 's/^/# /'
	check "$driver: the hub is found to be no clock" same 1 \
		"$(stat_of "$near" no_wire_clock)"
	check "$driver: timer is in force" same timer \
		"$(stat_of "$near" mode_in_force)"
	ip link set "$near" down
	sleep 0.1
	ip link set "$near" up
	linked "$near" >/dev/null || :
	flow_stop
	before=$(sent)
	flow "$near" "count 50" "delay 0" "skb_priority 65537"
	flow_done
	check "$driver: the queue is empty after down and up" drained "$near"
	check "$driver: frames reach the device after down and up" at_least 50 $(($(sent) - before))
	ip link set "$far" down
	sleep 0.1
	ip link set "$far" up
	check "$driver: the link returns with the far end" linked "$near"
	check "$driver: a longer MTU" ip link set "$near" mtu 1600
	check "$driver: the largest frame follows the MTU" same 1614 "$(stat_of "$near" max_frame)"
	ip link set "$near" mtu 1500

	flow "$near" "delay 20000" "skb_priority 65537"
	pci=$(readlink -f "/sys/class/net/$near/device")
	[ -e "$pci/remove" ] || pci=${pci%/*}
	echo 1 >"$pci/remove"
	flow_stop 2>/dev/null || :
	check "$driver: the device is removed under traffic" \
		[ ! -e "/sys/class/net/$near" ]
}

of igb 1000
of virtio_net 1000
if whole "drivers e1000e, 8139cp and vmxnet3"; then
	of e1000e 1000
	of 8139cp 100
	of vmxnet3 1000
fi

# Twice, beside other work, this guest hung at its end (6.1): a report of a multicast listener never
# left virtio_net's transmit function. By its code that waits for the device, which is shut down by
# then. A device that is down sends nothing.
for device in /sys/class/net/*; do
	[ ! -e "$device/device" ] || ip link set "${device##*/}" down
done
finish
