#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What iperf3's client does after it could not send for a while.
. "$(dirname "$0")/lib.sh"

finding 'iperf3 -u -b 8M never sends faster than 8 Mbit/s: what it could not send for two seconds is missing then' \
	'the rate is the mean since the beginning: it sends faster until all of it is made up for, here in the two seconds left'

for version in 3.12-1+deb12u2 3.18-2+deb13u2; do
	case $version in *deb12*) suite=bookworm ;; *) suite=trixie ;; esac
	packages "$work/$version" $suite "iperf3=$version"
	# sent STOPPED: kB in 6 s.
	sent() {
		unshare -n sh "$here/iperf3/pair.sh" "$work/$version" "$1" -u -b 8M -l 1000 -t 6 |
			python3 -c 'import json, sys; print(json.load(sys.stdin)["end"]["sum"]["bytes"] // 1000)'
	}
	seen_within "$version, kB in 6 s" "$(sent 0)" 5900 6100
	seen_within "$version, kB in 6 s, of which it was stopped for 2 s" "$(sent 2)" 5900 6100
done
done_
