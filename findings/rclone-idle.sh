#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# At what rate rclone sends, with a limit, after nobody asked for anything.
. "$(dirname "$0")/lib.sh"

finding 'rclone --bwlimit 100k sends no more than about 100 KiB in a second' \
	'its bucket has 4 MiB, whatever the limit. It is empty at first, and fills while nothing is transferred: a server, a mount
       or a daemon that was idle for 45 s sends 4.3 MB in the first second, 43 s of the rate'

packages "$work/tree" trixie rclone=1.60.1+dfsg-4
mkdir -p "$work/tree/tmp/served" "$work/tree/proc"
devices "$work/tree"
head -c 6000000 /dev/zero >"$work/tree/tmp/served/file"
cat >"$work/ask.py" <<'END'
import socket, subprocess, sys, time
idle = int(sys.argv[1])
subprocess.run(["ip", "link", "set", "lo", "mtu", "1500", "up"], check=True)
for kind in "rmem", "wmem":
    open(f"/proc/sys/net/ipv4/tcp_{kind}", "w").write("4096 16384 16384")
server = subprocess.Popen(sys.argv[2:], stderr=subprocess.DEVNULL)


def connection():
    for _ in range(150):
        try:
            return socket.create_connection(("127.0.0.1", 8080))
        except OSError:
            time.sleep(.1)
    sys.exit("rclone does not listen")


def ask():
    with connection() as server:
        server.sendall(b"GET /file HTTP/1.0\r\nHost: x\r\n\r\n")
        begun, kilobytes = time.monotonic(), [0] * 5
        while (second := int(time.monotonic() - begun)) < len(kilobytes):
            if not (data := server.recv(8192)):
                break
            kilobytes[second] += len(data) / 1000
    print(*map(round, kilobytes))


ask()
time.sleep(idle)
ask()
server.kill()
END
unshare -n python3 "$work/ask.py" 45 chroot "$work/tree" /usr/bin/rclone serve http /tmp/served --addr 127.0.0.1:8080 \
	--bwlimit 100k --config /tmp/none >"$work/told"
echo "seen:  kB in each second: $(head -n 1 "$work/told"), and after 45 s: $(tail -n 1 "$work/told")"
seen_within 'the second second, kB' "$(head -n 1 "$work/told" | cut -d ' ' -f 2)" 50 200
seen_within 'the first one after 45 s without a request, kB' "$(tail -n 1 "$work/told" | cut -d ' ' -f 1)" 3500 4600
seen_within 'the last one, kB' "$(tail -n 1 "$work/told" | cut -d ' ' -f 5)" 50 200
done_
