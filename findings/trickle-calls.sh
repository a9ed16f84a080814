#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Which sockets and which calls of a program trickle limits.
. "$(dirname "$0")/lib.sh"

finding 'trickle -u 100 limits what a program sends by the C library, however it sends' \
	'1.07 limits no socket that was made with SOCK_CLOEXEC or SOCK_NONBLOCK, as Python and most servers make theirs; 1.08 limits send and write,
       and lets sendmsg, sendfile and splice pass. Neither says a word. The package of Debian 13 does not start at all: it looks for its library where the package
       does not put it, and -P has to name it'

# limits ROOT OPTION CASE...: seconds for 300,000 bytes at 100 KB/s, by flags of socket() and by call.
limits() {
	root=$1
	option=$2
	shift 2
	mkdir -p "$root/tmp"
	cat >"$root/tmp/send.py" <<-'END'
		import ctypes, os, socket, sys, time
		flags, how = sys.argv[1].split(":")
		flags = {"none": 0, "cloexec": socket.SOCK_CLOEXEC, "nonblock": socket.SOCK_NONBLOCK}[flags]
		listener = socket.socket()
		listener.bind(("127.0.0.1", 0))
		listener.listen()
		# Python itself makes each socket with SOCK_CLOEXEC.
		make = ctypes.CDLL(None).socket
		out = socket.socket(fileno=make(socket.AF_INET, socket.SOCK_STREAM | flags, 0))
		out.setblocking(True)
		out.connect(listener.getsockname())
		into, _ = listener.accept()
		if os.fork() == 0:
		    out.close()
		    while os.read(into.fileno(), 65536):
		        pass
		    os._exit(0)
		into.close()
		left = 300000
		with open("/tmp/file", "wb") as file:
		    file.write(bytes(left))
		file = open("/tmp/file", "rb")
		first, last = os.pipe()
		begun = time.monotonic()
		while left:
		    most = min(left, 10000)
		    if how == "send":
		        left -= out.send(bytes(most))
		    elif how == "write":
		        left -= os.write(out.fileno(), bytes(most))
		    elif how == "sendmsg":
		        left -= out.sendmsg([bytes(most)])
		    elif how == "sendfile":
		        left -= os.sendfile(out.fileno(), file.fileno(), 300000 - left, most)
		    else:
		        left -= os.splice(first, out.fileno(), os.write(last, bytes(min(most, 4096))))
		out.close()
		os.wait()
		print(round(time.monotonic() - begun, 2))
	END
	devices "$root"
	for case in "$@"; do
		least=${case#*=}
		case=${case%=*}
		# shellcheck disable=SC2086
		seen_within "$case: seconds for 300,000 bytes at 100 KB/s" "$(timeout 30 unshare -n sh -c "
			ip link set lo up
			chroot $root trickle $option -s -u 100 -d 1000000 python3 /tmp/send.py $case
		" 2>&1)" $least $((least * 4 + 1))
	done
}
packages "$work/bookworm" bookworm trickle=1.07-12 python3
limits "$work/bookworm" '' none:send=2 cloexec:send=0 nonblock:send=0
packages "$work/trixie" trixie trickle=1.08+ds-1.1 python3
seen 'trickle of trixie' "$(inside "$work/trixie" trickle -s -u 100 true 2>&1 || :)" 'trickle: Could not find overload object'
limits "$work/trixie" '-P /usr/lib/x86_64-linux-gnu/trickle/trickle-overload.so' \
	none:send=2 cloexec:send=2 cloexec:write=2 cloexec:sendmsg=0 cloexec:sendfile=0 cloexec:splice=0
done_
