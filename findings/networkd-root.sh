#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What systemd-networkd does with a root qdisc of others, and with its own.
. "$(dirname "$0")/lib.sh"

finding 'systemd-networkd applies the section for a qdisc of a .network file when it configures the device, and takes it away with the section' \
	'252 asks for the kind alone: a root of that kind stays as it is, also after the rate in the file was changed; 257 changes it, whoever made it.
       Both replace a root of another kind, with its classes, at each start and reconfigure. Neither takes its own away when the section is gone'

cat >"$work/steps" <<'END'
export SYSTEMD_IGNORE_CHROOT=1
mkdir -p "$R/run/systemd/netif/links" "$R/run/systemd/netif/leases" "$R/run/systemd/netif/lldp" "$R/etc/systemd/network"
chown -R 101:101 "$R/run/systemd/netif"
start() {
	chroot "$R" /lib/systemd/systemd-networkd >/dev/null 2>&1 &
	networkd=$!
	sleep 3
}
stop() {
	kill $networkd
	wait $networkd
}
reconfigure() {
	chroot "$R" networkctl reload
	chroot "$R" networkctl reconfigure va
	sleep 2
}
file() { printf '[Match]\nName=va\n[Network]\nAddress=10.9.9.1/24\n%s' "$1" >"$R/etc/systemd/network/a.network"; }
section() { printf '[TokenBucketFilter]\nRate=%s\nBurstBytes=20K\nLatencySec=50ms\n' "$1"; }
of_others() {
	tc qdisc del dev va root
	tc qdisc add dev va root handle 7073: htb default 1
	tc class add dev va parent 7073: classid 7073:1 htb rate 1mbit
}
of_others
file ''
start
reconfigure
say without
stop
tc qdisc del dev va root
file "$(section 2M)"
start
say fresh
file "$(section 3M)"
reconfigure
say changed
tc qdisc replace dev va root handle 7073: tbf rate 1mbit burst 10k latency 50ms
reconfigure
say same_kind
of_others
reconfigure
say other_kind
of_others
stop
start
say started
file ''
reconfigure
say section_gone
END
for of in bookworm:252.39-1~deb12u2 trixie:257.13-1~deb13u1; do
	suite=${of%%:*}
	root=$work/$suite
	packages "$root" "$suite" "systemd=${of#*:}" dbus
	system "$root"
	user "$root" systemd-network 101
	on_system "$root" <"$work/steps"
	is() { seen "$suite: $1" "$(said "$2")" "$3"; }
	is 'a root of others, no section, reconfigure' without 'htb 7073: root *'
	is 'a section of 2 Mbit/s, no root' fresh 'tbf *: root rate 2Mbit burst 20Kb lat 50ms*'
	case $suite in
	bookworm)
		is 'the file says 3 Mbit/s, reload and reconfigure' changed 'tbf *: root rate 2Mbit burst 20Kb lat 50ms*'
		is 'a tbf of others with 1 Mbit/s, reconfigure' same_kind 'tbf 7073: root rate 1Mbit burst 10Kb lat 50ms*'
		;;
	*)
		is 'the file says 3 Mbit/s, reload and reconfigure' changed 'tbf *: root rate 3Mbit burst 20Kb lat 50ms*'
		is 'a tbf of others with 1 Mbit/s, reconfigure' same_kind 'tbf 7073: root rate 3Mbit burst 20Kb lat 50ms*'
		;;
	esac
	is 'an htb of others, reconfigure' other_kind 'tbf *: root rate ?Mbit burst 20Kb lat 50ms*'
	is 'an htb of others, started again' started 'tbf *: root rate 3Mbit burst 20Kb lat 50ms*'
	is 'the section is gone, reconfigure' section_gone 'tbf *: root rate 3Mbit burst 20Kb lat 50ms*'
done
done_
