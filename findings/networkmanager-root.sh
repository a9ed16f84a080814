#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What NetworkManager does with a root qdisc of others, and in what units its own has a rate.
. "$(dirname "$0")/lib.sh"

finding 'tc.qdiscs of NetworkManager means what the same words mean to tc, and once it is emptied NetworkManager leaves root qdiscs alone again' \
	'a rate is in bytes a second: "tbf rate 1000000" is 8 Mbit/s. The emptied property leaves an empty setting in the profile, which nmcli shows as no value,
       and each activation then deletes the root of others; "nmcli connection modify NAME remove tc" takes it away, and the next activation deletes the root once more.
       Reapplying changes no qdisc'

root=$work/tree
packages "$root" trixie network-manager=1.52.1-1 dbus
system "$root"
mkdir -p "$root/etc/NetworkManager/system-connections"
cat >"$root/etc/NetworkManager/NetworkManager.conf" <<-'END'
	[main]
	plugins=keyfile
	auth-polkit=false
	no-auto-default=*
	[device]
	match-device=interface-name:va
	managed=1
END
on_system "$root" <<'END'
chroot "$R" NetworkManager --no-daemon >/dev/null 2>&1 &
sleep 4
nmcli() { chroot "$R" nmcli -w 10 "$@" >/dev/null; }
setting() { echo "$1 $(chroot "$R" nmcli -f tc connection show c | tr -s ' \n' ' ')"; }
of_others() { tc qdisc replace dev va root handle 7073: tbf rate 1mbit burst 10k latency 50ms; }
of_others
nmcli connection add type ethernet ifname va con-name c ipv4.method manual ipv4.addresses 10.9.9.1/24 ipv6.method disabled autoconnect no
setting setting_none
nmcli connection up c
say without
nmcli connection modify c tc.qdiscs 'root handle 1234 tbf rate 1000000 burst 16000 latency 50000'
nmcli connection up c
say rate
of_others
nmcli device reapply va
say reapplied
nmcli connection up c
say activated
nmcli connection modify c tc.qdiscs ''
setting setting_emptied
of_others
nmcli connection up c
say emptied
nmcli connection modify c remove tc
of_others
nmcli connection up c
say removed
of_others
nmcli connection up c
say removed_before
END
seen 'a root of others, no setting tc, activated' "$(said without)" 'tbf 7073: root rate 1Mbit burst 10Kb lat 50ms*'
seen 'tc.qdiscs with "tbf rate 1000000", activated' "$(said rate)" 'tbf 1234: root rate 8Mbit burst 16000b lat 50ms*'
seen 'a root of others, reapplied' "$(said reapplied)" 'tbf 7073: root rate 1Mbit burst 10Kb lat 50ms*'
seen 'activated' "$(said activated)" 'tbf 1234: root rate 8Mbit burst 16000b lat 50ms*'
seen 'what nmcli shows without a setting' "$(said setting_none)" ''
seen 'what it shows once tc.qdiscs was emptied' "$(said setting_emptied)" 'tc.qdiscs: -- tc.tfilters: --*'
seen 'a root of others then, activated' "$(said emptied)" 'noqueue 0: root*'
seen 'after remove tc, activated' "$(said removed)" 'noqueue 0: root*'
seen 'activated once more' "$(said removed_before)" 'tbf 7073: root rate 1Mbit burst 10Kb lat 50ms*'
done_
