#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Whose CLOCK_MONOTONIC a launch time is of, where a process has its own.
. "$(dirname "$0")/lib.sh"
finding 'in a time namespace the kernel translates times on CLOCK_MONOTONIC that a process gives it, launch times (SO_TXTIME) as those of its timers' \
	'a timer is translated, a launch time is not: 1 s ahead by a clock that is 1000 s ahead is 1001 s to fq, which drops the packet'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq veth' python3
{
	veth_pair
	cat <<-'EOF'
		ip neigh add 10.0.0.3 dev va lladdr 02:00:00:00:00:03 nud permanent
		cat >/tmp/send.py <<'END'
		import os, socket, struct, subprocess, time

		def send(name):
		    os.system("tc qdisc add dev va root fq")
		    begun = time.monotonic()
		    timer = os.timerfd_create(time.CLOCK_MONOTONIC)
		    os.timerfd_settime(timer, flags=os.TFD_TIMER_ABSTIME, initial=begun + 1)
		    os.read(timer, 8)
		    print(name + "_timer", round(time.monotonic() - begun, 1))
		    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    s.setsockopt(socket.SOL_SOCKET, 61, struct.pack("iI", time.CLOCK_MONOTONIC, 0))
		    s.sendmsg([b"x"], [(socket.SOL_SOCKET, 61, struct.pack("Q", time.monotonic_ns() + 10**9))], 0, ("10.0.0.3", 9))
		    time.sleep(3)
		    out = subprocess.run("tc -s qdisc show dev va", shell=True, capture_output=True, text=True).stdout
		    print(name, "sent", out.split(" bytes ")[1].split()[0], "dropped", out.split("dropped ")[1].split(",")[0],
		          *["horizon_drops 1"] * ("horizon_drops 1" in out), flush=True)
		    os.system("tc qdisc del dev va root")

		send("outside")
		os.unshare(os.CLONE_NEWTIME)
		open("/proc/self/timens_offsets", "w").write("monotonic 1000 0\n")
		if os.fork() == 0:
		    send("inside")
		    os._exit(0)
		os.wait()
		END
		python3 /tmp/send.py
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen_within 'seconds until a timer of 1 s ahead' "$(said outside_timer)" 1 3
seen 'launch time 1 s ahead' "$(said outside)" 'sent 1 dropped 0'
seen_within 'in a time namespace whose monotonic clock is 1000 s ahead: seconds until a timer of 1 s ahead' "$(said inside_timer)" 1 3
seen 'launch time 1 s ahead there' "$(said inside)" 'sent 0 dropped 1 horizon_drops 1'
done_
