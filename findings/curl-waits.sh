#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# At what rate curl reads, with a limit, after it had to wait.
. "$(dirname "$0")/lib.sh"

finding 'curl --limit-rate 100k reads about 100 kB in each second, whatever was before, and 400 kB where -Z has four transfers' \
	'a transfer that had to wait makes up for all of it at the speed of the network: after a server that said nothing
       for 8 s it reads 0.9 MB at once. With -Z the second transfer to the last wait for the connection of the first,
       which might be one of HTTP/2, and that counts, too: one file comes at 100 kB/s, and then three in less than a second;
       and 200 files of 15 kB come at once. --parallel-immediate lets none wait, so each has the limit.
       (8.22.0 makes up for less: 240 kB in the first second after a stall, but 446 in one second of -Z)'

for version in 7.88.1-10+deb12u15 8.14.1-2+deb13u7; do
	case $version in *deb12*) suite=bookworm ;; *) suite=trixie ;; esac
	packages "$work/$version" $suite "curl=$version"
	devices "$work/$version"
	# taken OPTION...: kB in each second.
	taken() {
		unshare -n python3 "$here/transfers/served.py" 40 chroot "$work/$version" /usr/bin/curl -s --limit-rate 100k "$@" 2>/dev/null \
			>"$work/taken"
	}
	most() { tr ' ' '\n' <"$work/taken" | sort -n | tail -n 1; }
	url=http://127.0.0.1:8000
	taken $url/700000
	seen_within "$version, one file: most in a second" "$(most)" 90 400
	taken "$url/1500000?stall=8"
	echo "seen:  $version, kB in each second after a stall of 8 s (with 20 kB before it): $(cat "$work/taken")"
	seen_within 'most in a second' "$(most)" 600 1000
	taken -Z "$url/500000?[1-4]"
	echo "seen:  $version, kB in each second of four files of 500 kB with -Z: $(cat "$work/taken")"
	seen_within 'the second' "$(cut -d ' ' -f 2 "$work/taken")" 30 300
	seen_within 'most in a second' "$(most)" 900 1700
	taken -Z "$url/15000?[1-200]"
	seen_within "$version, 3 MB of 200 files with -Z: most in a second" "$(most)" 1000 3000
	taken -Z --parallel-immediate "$url/500000?[1-4]"
	seen_within "$version, four files with --parallel-immediate: most in a second" "$(most)" 300 1000
done
done_
