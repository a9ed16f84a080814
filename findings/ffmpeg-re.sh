#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# When FFmpeg sends what it is to read at its own rate.
. "$(dirname "$0")/lib.sh"

finding 'ffmpeg -re sends everything at its time, from the first packet on, also after it could not send for a while' \
	'7.1 begins with half a second at once (-readrate_initial_burst), which 0 does not turn off; 5.1 with a quarter. Where it
       was stopped, both send all that they missed at once (9.0.2 begins with the burst, too, and makes up slowly)'

# 30 s of 16-bit sound at 48 kHz, 96 bytes in a millisecond: a format of RTP as it is, so nothing is encoded.
cat >"$work/sound.py" <<'END'
import signal, socket, struct, subprocess, sys, time
tree, stopped, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
with open(tree + "/tmp/sound.au", "wb") as sound:
    sound.write(b".snd" + struct.pack(">5I", 24, 30 * 96000, 3, 48000, 1) + bytes(30 * 96000))
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
SO_RCVBUFFORCE = 33
taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taken.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
taken.bind(("127.0.0.1", 5000))
taken.settimeout(.05)
sender = subprocess.Popen(["chroot", tree, "/usr/bin/ffmpeg", "-v", "error", *sys.argv[4:], "-i", "/tmp/sound.au", "-c", "copy",
                           "-f", "rtp", "rtp://127.0.0.1:5000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
limit, first, resumes, came = time.monotonic() + 40, None, None, []
while (now := time.monotonic()) < (first + seconds if first else limit):
    if first and stopped and not resumes and now > first + 2:
        sender.send_signal(signal.SIGSTOP)
        resumes = now + stopped
    if resumes and now > resumes:
        sender.send_signal(signal.SIGCONT)
        resumes = limit
    try:
        payload = len(taken.recv(65536)) - 12
    except TimeoutError:
        continue
    first = first or time.monotonic()
    came.append((time.monotonic() - first, payload / 96))
sender.kill()
print(round(sum(ms for at, ms in came if at < .2)),
      round(max((sum(ms for at, ms in came if begin <= at < begin + .4) for begin, _ in came if begin > 1), default=0)))
END
for version in 5.1.9-0+deb12u1 7.1.5-0+deb13u1; do
	case $version in *deb12*) suite=bookworm least_and_most='200 490' ;; *) suite=trixie least_and_most='530 1100' ;; esac
	packages "$work/$version" $suite "ffmpeg=7:$version"
	mkdir -p "$work/$version/tmp"
	# sound STOPPED SECONDS OPTION...: ms of sound that come in the first 0.2 s, and most in 0.4 s after the first second.
	sound() {
		LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/lapack \
			unshare -n python3 "$work/sound.py" "$work/$version" "$@"
	}
	# at_first OPTION...: the first of these, the least of three times: a busy machine makes it more.
	at_first() {
		for _ in 1 2 3; do
			sound 0 2 "$@"
		done | sort -n | head -n 1 | cut -d ' ' -f 1
	}
	# shellcheck disable=SC2086
	seen_within "$version: ms of sound in the first 200 ms" "$(at_first -re)" $least_and_most
	seen_within "$version: most in 400 ms after it was stopped for 3 s, ms" "$(sound 3 7 -re | cut -d ' ' -f 2)" 2500 4000
	case $version in 7*)
		seen_within "$version: in the first 200 ms with -readrate_initial_burst 0" \
			"$(at_first -readrate 1 -readrate_initial_burst 0)" 530 1100
		seen_within "$version: with -readrate_initial_burst 0.001" \
			"$(at_first -readrate 1 -readrate_initial_burst 0.001)" 20 430
		;;
	esac
done
done_
