#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What chronyd knows of TAI on a host that was brought from Debian 12 to 13 with its file.
. "$(dirname "$0")/lib.sh"

finding 'a chrony.conf that came with Debian 12 gives the kernel the offset of TAI on Debian 13, too, as the packages keep a file that
       was changed' \
	'its line leapsectz right/UTC finds no such zone: trixie moved them to tzdata-legacy. chronyd 4.6 says "failed leap second check"
       once and goes on without leap seconds, from which it takes the offset of TAI that it tells the kernel, for CLOCK_TAI of etf, taprio
       and SO_TXTIME. The file of trixie has leapseclist instead'

packages "$work/12" bookworm chrony=4.3-2+deb12u3 tzdata=2026b-0+deb12u1
packages "$work/13" trixie chrony=4.6.1-3+deb13u2 tzdata=2026f-0+deb13u1
packages "$work/13legacy" trixie chrony=4.6.1-3+deb13u2 tzdata=2026f-0+deb13u1 tzdata-legacy=2026f-0+deb13u1
for version in 12 13; do
	seen "Debian $version: what its own file has" "$(grep -E '^leapsec' "$work/$version/usr/share/chrony/chrony.conf")" \
		"$([ $version = 12 ] && echo 'leapsectz right/UTC' || echo 'leapseclist /usr/share/zoneinfo/leap-seconds.list')"
done
# says ROOT DIRECTIVE: what chronyd says of its leap seconds; -x: it sets no clock.
says() {
	mkdir -p "$1/run/chrony" "$1/tmp"
	user "$1" root 0
	devices "$1"
	{ unshare --net timeout 3 chroot "$1" /usr/sbin/chronyd -x -d -u root "$2" 'pidfile /tmp/pid' 'cmdport 0' 'bindcmdaddress /' \
		'port 0' 2>&1 || :; } | sed -n 's/^[^ ]* \(.*[Ll]eap .*\)/\1/p' | head -n 1
}
seen 'Debian 12, leapsectz right/UTC' "$(says "$work/12" 'leapsectz right/UTC')" 'Using right/UTC timezone to obtain leap second data'
seen 'Debian 13, leapsectz right/UTC' "$(says "$work/13" 'leapsectz right/UTC')" '*failed leap second check, ignoring'
seen 'Debian 13 with tzdata-legacy' "$(says "$work/13legacy" 'leapsectz right/UTC')" 'Using right/UTC timezone to obtain leap second data'
seen 'Debian 13, its own line' "$(says "$work/13" 'leapseclist /usr/share/zoneinfo/leap-seconds.list')" 'Using leap second list *'
done_
