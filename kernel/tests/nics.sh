#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# psp runs on the drivers of real NICs. QEMU emulates them: a hub joins two of each, and
# they send as fast as the CPU makes frames, not at line rate. The test checks what holds
# on any NIC: psp loads, sends, and survives changes of the link and the removal of the
# device. Where the hub is faster than the line, psp finds that out and changes to its
# timer.

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

	# The rates are so high that the wire is filled without a wait.
	check "$driver: mode gap" fresh "$((line * 2 / 5))mbit" mode gap
	flow "$near" "delay 0" "skb_priority 65537"
	sleep 1
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

of e1000e 1000
of igb 1000
of virtio_net 1000
of 8139cp 100
of vmxnet3 1000
finish
