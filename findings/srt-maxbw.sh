#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# How SRT spaces what its input gives at once.
. "$(dirname "$0")/lib.sh"

finding 'SRT paces what it sends: with maxbw=0 at 1.25 times the rate of its input, and with its defaults so that a burst of 100 KB is spread' \
	'with its defaults (up to 1 Gbit/s) a burst leaves at once, and with maxbw=0 so do all of the first two seconds, until it knows the rate of its input;
       then 100 KB take half a second. maxbw=RATE, or maxbw=0 with inputbw=RATE, spreads from the first packet on'

cat >"$work/wire.py" <<'END'
# Most bytes of large UDP packets to port 9001 within 10 ms, in seconds 0 to 1.5 and from 3.5 on.
import socket, struct, time
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
SO_RCVBUFFORCE = 33
wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
wire.bind(("lo", 0))
wire.settimeout(0.2)
end, rows = time.monotonic() + 11, []
while time.monotonic() < end:
    try:
        packet, where = wire.recvfrom(70000)
    except TimeoutError:
        continue
    # Loopback shows each packet twice: going out is 4.
    if where[2] != 4 and packet[9] == 17 and struct.unpack(">H", packet[22:24])[0] == 9001 and len(packet) > 1000:
        rows.append((time.monotonic(), len(packet)))
def most(least_s, most_s):
    rows_s = [(at - rows[0][0], size) for at, size in rows if least_s <= at - rows[0][0] < most_s]
    return max(sum(size for at, size in rows_s if begun <= at < begun + 0.01) for begun, _ in rows_s)
print(len(rows), most(0, 1.5), most(3.5, 9))
END
cat >"$work/feed.py" <<'END'
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
time.sleep(2)
for _ in range(6):
    for _ in range(76):
        out.sendto(bytes(1316), ("127.0.0.1", 9000))
    time.sleep(1)
END
# wire ROOT OPTIONS: packets, and the most bytes within 10 ms of the first bursts and of those from the fourth second on.
wire() {
	timeout 40 unshare -n -p -f --kill-child sh -c "
		ip link set lo up
		python3 $work/wire.py &
		timeout 10 chroot $1 srt-live-transmit -q 'srt://:9001?mode=listener' udp://127.0.0.1:9999 >/dev/null 2>&1 &
		sleep 0.5
		timeout 9 chroot $1 srt-live-transmit -q udp://:9000 'srt://127.0.0.1:9001?mode=caller$2' >/dev/null 2>&1 &
		python3 $work/feed.py
		wait %1 2>/dev/null || wait
	" || :
}
for of in bookworm:1.5.1-1+deb12u1 trixie:1.5.4-1+deb13u1; do
	suite=${of%%:*}
	packages "$work/$suite" "$suite" "srt-tools=${of#*:}"
	devices "$work/$suite"
	for options in '' '&maxbw=0' '&maxbw=0&inputbw=100000' '&maxbw=250000'; do
		found=$(wire "$work/$suite" "$options")
		what="$suite, ${options:-its defaults}: most of 103,360 bytes within 10 ms"
		case $options in
		'') first=60000 last=60000 ;;
		'&maxbw=0') first=60000 last=0 ;;
		*) first=0 last=0 ;;
		esac
		seen_within "$what, first two bursts" "$(echo "$found" | cut -d ' ' -f 2)" $first $((first == 0 ? 30000 : 110000))
		seen_within "$what, from the fourth on" "$(echo "$found" | cut -d ' ' -f 3)" $last $((last == 0 ? 30000 : 110000))
	done
done
done_
