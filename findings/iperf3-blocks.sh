#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# In what pieces iperf3's TCP client sends when it is given a rate.
. "$(dirname "$0")/lib.sh"

finding 'iperf3 -b 1M sends a little each millisecond (--pacing-timer)' \
	'with TCP it writes whole blocks of 128 KiB, at 1 Mbit/s one in each second, and nothing in between; the timer only
       says when the next block may be due. With -l 1K it sends a little at a time'

for version in 3.12-1+deb12u2 3.18-2+deb13u2; do
	case $version in *deb12*) suite=bookworm ;; *) suite=trixie ;; esac
	packages "$work/$version" $suite "iperf3=$version"
	# pieces OPTION...: bytes in tenths of a second in which it sent, without the first, and how many there were.
	pieces() {
		unshare -n sh "$here/iperf3/pair.sh" "$work/$version" 0 -b 1M -t 4 -i 0.1 "$@" | python3 -c '
import json, sys
sent = [i["sum"]["bytes"] for i in json.load(sys.stdin)["intervals"]]
some = [n for n in sent if n]
print(*sorted({n for n in some}) if len(some) < 9 else ["up to", max(some)], "in", len(some), "of", len(sent))'
	}
	seen "$version, bytes a tenth of a second" "$(pieces)" '131072 in [34] of *'
	small=$(pieces -l 1K)
	echo "seen:  $version, -l 1K: $small"
	seen_within "$version, tenths of a second with bytes, -l 1K" "$(echo "$small" | sed 's/.* in \([0-9]*\) of.*/\1/')" 30 41
done
done_
