#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# In what pieces xrdcp of XRootD reads when it is given a rate.
. "$(dirname "$0")/lib.sh"

finding 'xrdcp --xrate 2m reads about 2 MiB in each second' \
	'the rate says when the next chunk may follow, and a chunk has 8 MiB. Four are asked for at first: 34 MB come at the speed of
       the network, then 8.4 MB once in four seconds, and nothing in between. The shorter a transfer, the less is left of the
       rate. XRD_CPPARALLELCHUNKS=1 and XRD_CPCHUNKSIZE=262144 make it a little at a time'

packages "$work/tree" trixie xrootd-client=5.8.1-1 xrootd-server=5.8.1-1 xrootd-server-plugins=5.8.1-1
mkdir -p "$work/tree/etc" "$work/tree/tmp/served"
devices "$work/tree"
head -c 60000000 /dev/zero >"$work/tree/tmp/served/file"
chmod 777 "$work/tree/tmp" "$work/tree/tmp/served"
# The server refuses to be root, and wants a name of its host.
user "$work/tree" xrootd 100
echo 'hosts: files' >"$work/tree/etc/nsswitch.conf"
echo '127.0.0.1 localhost finding' >"$work/tree/etc/hosts"
printf '%s\n' 'all.export /tmp/served' 'xrd.network nodnr' 'all.adminpath /tmp' 'all.pidpath /tmp' >"$work/tree/tmp/config"
cat >"$work/copy.py" <<'END'
import os, subprocess, sys, time
tree, seconds = sys.argv[1], int(sys.argv[2])
subprocess.run("ip link set lo up && hostname finding", shell=True, check=True)
server = subprocess.Popen(["chroot", "--userspec=100:100", tree, "/usr/bin/xrootd", "-c", "/tmp/config", "-l", "/tmp/log"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def received():
    with open("/proc/net/dev") as devices:
        return next(int(line.split()[1]) for line in devices if "lo:" in line)


for _ in range(100):
    # 1094 is 446 in this list; 0A is one that listens.
    if any(":0446 " in line and " 0A " in line for line in open("/proc/net/tcp6").readlines() + open("/proc/net/tcp").readlines()):
        break
    time.sleep(.1)
begun, kilobytes, before = time.monotonic(), [], received()
client = subprocess.Popen(["chroot", tree, "/usr/bin/xrdcp", "--nopbar", "--force", "--xrate", "2m",
                           "root://127.0.0.1//tmp/served/file", "/tmp/copy"],
                          env={**os.environ, "HOME": "/tmp"}, stderr=subprocess.DEVNULL)
while len(kilobytes) < seconds and client.poll() is None:
    time.sleep(max(0, begun + len(kilobytes) + 1 - time.monotonic()))
    now = received()
    kilobytes.append((now - before) // 1000)
    before = now
client.kill()
server.kill()
print(*kilobytes)
END
# taken NAME=VALUE...: kB at the loopback in each of 12 seconds.
taken() { env "$@" unshare -n -u python3 "$work/copy.py" "$work/tree" 12 >"$work/taken"; }
# of TEST: how many seconds have kB for which it holds.
of() { tr ' ' '\n' <"$work/taken" | awk "$1" | wc -l; }
taken LC_ALL=C
echo "seen:  kB in each second: $(cat "$work/taken")"
seen_within 'in the first two seconds' "$(awk '{ print $1 + $2 }' "$work/taken")" 30000 36000
seen_within 'seconds with less than 1 MB' "$(of '$1 < 1000')" 6 9
seen_within 'seconds with more than 8 MB' "$(of '$1 > 8000')" 3 4
taken XRD_CPPARALLELCHUNKS=1 XRD_CPCHUNKSIZE=262144
echo "seen:  with one chunk of 256 KiB at a time: $(cat "$work/taken")"
seen_within 'seconds with 1 to 3.5 MB' "$(of '$1 > 1000 && $1 < 3500')" 10 12
done_
