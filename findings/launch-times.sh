#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What fq makes of a launch time (SO_TXTIME) that meets a rate, TCP, pieces of a datagram, or another clock.
. "$(dirname "$0")/lib.sh"
finding 'a launch time is kept or refused: TCP refuses it, of the pieces of a datagram the last one counts, a rate of the socket holds beside it,
       and a sender that asks for reports hears of what fq drops' \
	'TCP takes launch times and ignores them; of the pieces the first one counts; a packet with a time obeys no rate of its socket, and is
       overtaken by one without; the mode of deadlines changes nothing; what fq drops beyond its horizon, as all of CLOCK_TAI, is not reported at
       the error queue'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq veth' python3
{
	veth_pair
	cat <<-'EOT'
		cat >/tmp/receive.py <<'END'
		import socket, sys, threading, time
		def tcp():
		    l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		    l.bind(("10.0.0.2", 9)); l.listen()
		    while True:
		        c, _ = l.accept()
		        while c.recv(100):
		            print("tcp", time.monotonic(), flush=True)
		threading.Thread(target=tcp, daemon=True).start()
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.bind(("10.0.0.2", 9))
		while True:
		    data = s.recv(20000)
		    print(data[:4].decode(), time.monotonic(), flush=True)
		END
		ip netns exec n python3 /tmp/receive.py >/tmp/received &
		receiver=$!
		cat >/tmp/send.py <<'END'
		import errno, os, socket, struct, time
		TXTIME = 61
		AT = ("10.0.0.2", 9)

		def udp(flags=0, clock=time.CLOCK_MONOTONIC):
		    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    s.setsockopt(socket.SOL_SOCKET, TXTIME, struct.pack("iI", clock, flags))
		    s.connect(AT)
		    return s

		def send(s, data, after, flags=0):
		    cmsg = [] if after is None else [(socket.SOL_SOCKET, TXTIME, struct.pack("Q", time.monotonic_ns() + int(after * 1e9)))]
		    s.sendmsg([data], cmsg, flags)

		def times(begun, name):
		    return [round(float(line.split()[1]) - begun, 1) for line in open("/tmp/received") if line.split()[0] == name]

		def say(name, *what):
		    print(name, *what, flush=True)

		time.sleep(4)
		# A time 1 s ahead on TCP.
		t = socket.socket()
		t.connect(AT)
		try:
		    t.setsockopt(socket.SOL_SOCKET, TXTIME, struct.pack("iI", time.CLOCK_MONOTONIC, 0))
		    begun = time.monotonic()
		    send(t, b"x", 2)
		    time.sleep(4)
		    say("tcp", *times(begun, "tcp"))
		except OSError as error:
		    say("tcp", errno.errorcode[error.errno])
		# The mode of deadlines.
		s = udp(1)
		begun = time.monotonic()
		send(s, b"dead", 2)
		time.sleep(4)
		say("deadline", *times(begun, "dead"))
		# Beyond the horizon, with reports.
		s = udp(2)
		send(s, b"hori", 20)
		time.sleep(1)
		s.setblocking(False)
		try:
		    say("report", s.recvmsg(100, 1000, socket.MSG_ERRQUEUE)[1])
		except OSError as error:
		    say("report", errno.errorcode[error.errno])
		# Pieces with times of their own.
		s = udp()
		begun = time.monotonic()
		send(s, b"cork", 1, socket.MSG_MORE)
		send(s, b"x", 3)
		time.sleep(5)
		say("cork", *times(begun, "cork"))
		s = udp()
		begun = time.monotonic()
		send(s, b"cor2", None, socket.MSG_MORE)
		send(s, b"x", 3)
		time.sleep(5)
		say("cork2", *times(begun, "cor2"))
		# A packet without a time behind one with.
		s = udp()
		begun = time.monotonic()
		send(s, b"late", 2)
		send(s, b"none", None)
		time.sleep(4)
		say("behind", *times(begun, "late"), *times(begun, "none"))
		# A rate of 1000 bytes a second, with and without times that are a tenth of a second apart.
		s = udp()
		s.setsockopt(socket.SOL_SOCKET, 47, 1000)
		begun = time.monotonic()
		for number in range(5):
		    send(s, b"rate" + bytes(900), 1 + number / 10)
		time.sleep(3)
		say("rate", *times(begun, "rate"))
		s = udp()
		s.setsockopt(socket.SOL_SOCKET, 47, 1000)
		begun = time.monotonic()
		for number in range(3):
		    send(s, b"slow" + bytes(900), None)
		time.sleep(4)
		say("slow", *times(begun, "slow"))
		# Clocks by user.
		for user in (0, 1000):
		    os.seteuid(user)
		    taken = []
		    for name, clock in (("monotonic", time.CLOCK_MONOTONIC), ("tai", 11)):
		        try:
		            udp(0, clock).close()
		            taken.append(name)
		        except OSError as error:
		            taken.append(errno.errorcode[error.errno])
		    say(f"user{user}", *taken)
		    os.seteuid(0)
		# A time on CLOCK_TAI.
		s = udp(0, 11)
		begun = time.monotonic()
		s.sendmsg([b"tai1"], [(socket.SOL_SOCKET, TXTIME, struct.pack("Q", time.clock_gettime_ns(11) + 2 * 10**9))])
		time.sleep(4)
		say("tai", *times(begun, "tai1"))
		END
		tc qdisc add dev va root fq
		python3 /tmp/send.py
		tc -s qdisc show dev va | sed -n 's/.*(\(dropped [0-9]*\),.*/\1/p; s/ *\(horizon_drops\)/\1/p' | say fq
		kill $receiver
	EOT
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen_within 'TCP, 2 s ahead: seconds until it comes' "$(said tcp)" 0 1
seen_within 'in the mode of deadlines, 2 s ahead' "$(said deadline)" 1.9 3
seen 'error queue of a socket whose packet fq drops, with SOF_TXTIME_REPORT_ERRORS' "$(said report)" EAGAIN
seen_within 'a datagram of two pieces with times 1 and 3 s ahead' "$(said cork)" 0.9 2
seen_within 'with a time for the second piece alone' "$(said cork2)" 0 1
seen_within 'a packet 2 s ahead' "$(said behind | cut -d ' ' -f 1)" 1.9 3
seen_within 'one without a time, sent after it' "$(said behind | cut -d ' ' -f 2)" 0 1
seen_within 'the last of five of 900 bytes at 1000 bytes a second, by times 1 to 1.4 s ahead' "$(said rate | cut -d ' ' -f 5)" 1.3 2.4
seen_within 'the last of three without times' "$(said slow | cut -d ' ' -f 3)" 1.6 4
seen 'CLOCK_MONOTONIC and CLOCK_TAI, of root' "$(said user0)" 'monotonic tai'
seen 'of another user' "$(said user1000)" 'monotonic EPERM'
seen 'a time on CLOCK_TAI, 2 s ahead' "came: $(said tai)" 'came: '
seen 'fq' "$(said fq)" 'dropped 2 horizon_drops 2'
done_
