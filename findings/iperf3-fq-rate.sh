#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What rate iperf3 gives its socket for a --fq-rate above 34.36 Gbit/s.
. "$(dirname "$0")/lib.sh"

finding 'iperf3 --fq-rate 40g paces at 40 Gbit/s' \
	'3.12 sets the rate in 32 bits of bytes a second, and it wraps: 40g are 5.64 Gbit/s, and 34.4g are 40 Mbit/s,
       without a word. 3.18 sets 64 bits'

packages "$work/ss" trixie iproute2=6.15.0-1
# paced ROOT RATE: what rate its socket has, in bit/s, and whether more than 1 Gbit/s came.
paced() {
	unshare -n sh -c '
		sh "$1/iperf3/pair.sh" "$2" 0 --fq-rate "$3" -t 3 >"$4/json" &
		: >"$4/set"
		for _ in $(seq 50); do
			sleep 0.1
			chroot "$4/ss" /usr/bin/ss -tin "dport = 5201" | sed -n "s,.*pacing_rate [0-9]*bps/\([0-9]*\)bps.*,\1,p" >>"$4/set"
			[ ! -s "$4/set" ] || break
		done
		wait
	' - "$here" "$1" "$2" "$work"
	python3 - "$work/json" "$work/set" <<-'END'
		import json, sys
		got = json.load(open(sys.argv[1]))["end"]["sum_received"]["bits_per_second"]
		print(*open(sys.argv[2]).read().split()[:1], "more" if got > 1e9 else "less")
	END
}
for version in 3.12-1+deb12u2 3.18-2+deb13u2; do
	case $version in *deb12*) suite=bookworm ;; *) suite=trixie ;; esac
	packages "$work/$version" $suite "iperf3=$version"
	case $version in
	3.12*) at_34='40261632 less' at_40='5640261632 *' ;;
	*) at_34='34400000000 more' at_40='40000000000 *' ;;
	esac
	seen "$version, 34g: bit/s of its socket, got than 1 Gbit/s" "$(paced "$work/$version" 34g)" '34000000000 *'
	seen "$version, 34.4g" "$(paced "$work/$version" 34.4g)" "$at_34"
	seen "$version, 40g" "$(paced "$work/$version" 40g)" "$at_40"
done
done_
