#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# In what pieces rsync writes when it is given a rate.
. "$(dirname "$0")/lib.sh"
finding 'rsync --bwlimit writes a buffer of some KB at a time, and makes up for a receiver that stood still' \
	'it waits only once it is a tenth of a second ahead: each time 1.1 MB go at once at 10 MiB/s, and more than 10 MB in a tenth of a second at 100. After a stall it goes on at its rate'

# Beside a program that stands for ssh: it starts the other rsync, passes on what comes, and notes when.
cat >"$work/relay.py" <<'END'
import os, subprocess, sys, threading, time
stall_s = float(os.environ["STALL"])
other = subprocess.Popen(["rsync"] + sys.argv[sys.argv.index("--server"):], stdin=subprocess.PIPE)
begun, seen, stalled = time.monotonic(), [], 0


def most(window_s, of):
    best = first = within = 0
    for time_s, count in of:
        within += count
        while of[first][0] <= time_s - window_s:
            within -= of[first][1]
            first += 1
        best = max(best, within)
    return round(best / 1024)


def end():
    other.wait()
    of = seen[stalled:]
    rate = sum(count for _, count in of) / (of[-1][0] - of[0][0])
    with open("/tmp/said", "w") as said:
        print(round(rate / 1024), most(.01, of), most(.1, of), most(1, of), file=said)
    # As ssh, it ends with the other program.
    os._exit(0)


threading.Thread(target=end).start()
while data := os.read(0, 1 << 20):
    seen.append((time.monotonic() - begun, len(data)))
    other.stdin.write(data)
    other.stdin.flush()
    if stall_s and seen[-1][0] > 2:
        time.sleep(stall_s)
        stalled, stall_s = len(seen), 0
END
for version in 3.2.7-1+deb12u6 3.5.0+ds1-0+deb13u2; do
	case $version in *deb12*) suite=bookworm ;; *) suite=trixie ;; esac
	tree=$work/$version
	packages "$tree" $suite "rsync=$version" python3-minimal
	mkdir -p "$tree/tmp/to"
	head -c 60000000 /dev/urandom >"$tree/tmp/file"
	cp "$work/relay.py" "$tree/tmp/"
	# written RATE STALL: KiB a second; the most in 10 ms, in 100 ms and in a second, KiB.
	written() {
		rm -f "$tree/tmp/to/file"
		STALL=$2 inside "$tree" rsync --bwlimit="$1" --whole-file -e 'python3 /tmp/relay.py' /tmp/file nobody:/tmp/to/ >&2
		cat "$tree/tmp/said"
	}
	set -- $(written 10m 0)
	seen_within "$version, --bwlimit=10m: KiB a second" "$1" 9900 10800
	seen_within 'the most in 10 ms, KiB' "$2" 900 1400
	seen_within 'the most in 100 ms, KiB' "$3" 900 1400
	set -- $(written 10m 3)
	seen_within 'after 3 s in which nobody read: the most in a second, KiB' "$4" 9900 11600
	set -- $(written 100m 0)
	seen_within '--bwlimit=100m: the most in 100 ms, KiB' "$3" 10240 30000
done
done_
