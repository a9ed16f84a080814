#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# At what rate aria2 reads, with a limit, after its server said nothing for a while.
. "$(dirname "$0")/lib.sh"

finding 'aria2c --max-download-limit=100K reads about 100 KiB in each second, also after a server that stalled' \
	'the limit is the mean of the last ten seconds. After a stall of 8 s it reads more than 0.8 MB in a second and nothing in
       the seven seconds that follow, and ten seconds later that again, once or more, before it is even'

packages "$work/tree" trixie aria2=1.37.0+debian-3
mkdir -p "$work/tree/tmp"
devices "$work/tree"
# taken PATH: kB in each second.
taken() {
	unshare -n python3 "$here/transfers/served.py" 45 chroot "$work/tree" /usr/bin/aria2c -q --max-download-limit=100K \
		--dir /tmp --out file --allow-overwrite "http://127.0.0.1:8000/$1" >"$work/taken"
}
# of FIRST TEST: for how many seconds, from this one on, it holds.
of() { cut -d ' ' -f "$1-" "$work/taken" | tr ' ' '\n' | awk "$2" | wc -l; }
taken 1500000
seen_within 'no stall: seconds with more than 200 kB' "$(of 1 '$1 > 200')" 0 0
taken '3000000?stall=8'
echo "seen:  after a stall of 8 s, kB in each second (with 20 kB before it): $(cat "$work/taken")"
seen_within 'after it, seconds with more than 300 kB' "$(of 9 '$1 > 300')" 2 5
seen_within 'seconds with less than 30 kB' "$(of 9 '$1 < 30')" 12 32
done_
