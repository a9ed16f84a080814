#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Which options that pace or class a connection MPTCP takes.
. "$(dirname "$0")/lib.sh"
finding 'what paces and classes a TCP works on MPTCP, which is TCP to a program' \
	'SO_MAX_PACING_RATE is refused (EOPNOTSUPP, alias ENOTSUP), also where the peer made it fall back to TCP; SO_PRIORITY and TCP_CONGESTION are taken. On a listener of MPTCP a plain client'\''s connection takes the rate and another client'\''s does not'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		cat >/tmp/mptcp.py <<'END'
		import errno, socket
		MPTCP = 262

		def listen(protocol):
		    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
		    s.bind(("127.0.0.1", 0))
		    s.listen()
		    return s

		def connect(listener, protocol):
		    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
		    s.connect(listener.getsockname())
		    return s, listener.accept()[0]

		def tell(name, s):
		    got = []
		    for level, option, value in (1, 47, 100000), (1, 12, 5), (6, 13, b"reno"):
		        try:
		            s.setsockopt(level, option, value)
		            got.append("taken")
		        except OSError as e:
		            got.append(errno.errorcode[e.errno])
		    print(name, *got)

		multi, plain = listen(MPTCP), listen(0)
		both = connect(multi, MPTCP)
		tell("client", both[0])
		tell("accepted", both[1])
		fallback = connect(plain, MPTCP)
		tell("fallback", fallback[0])
		tell("plain", connect(multi, 0)[1])
		END
		python3 /tmp/mptcp.py
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
seen 'SO_MAX_PACING_RATE, SO_PRIORITY, TCP_CONGESTION of a client' "$(said client)" 'ENOTSUP taken taken'
seen 'of what the server accepted' "$(said accepted)" 'ENOTSUP taken taken'
seen 'of a client whose server has no MPTCP' "$(said fallback)" 'ENOTSUP taken taken'
seen 'of what a server of MPTCP accepted from a plain client' "$(said plain)" 'taken taken taken'
done_
