#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What the qlogs of both ends of one connection say, made by aioquic over a path that the script plays.
. "$(dirname "$0")/lib.sh"
finding 'the times of a qlog are of the clock that the caller gives the connection, and a packet_dropped is a packet that the receiver could not use' \
	'times are those of the wall clock when a line was written, whatever the caller says the time is: only ack_delay and round trips are of its clock, and a wall clock that is set moves the log. In a connection without loss both ends log a packet_dropped with header_parse_error: it is the padding behind the Initial in its datagram. A datagram that comes twice is a packet_dropped too (duplicate), so none of these is a loss'
python aioquic==1.7.2 cryptography==50.0.2
cat >"$work/both.py" <<'EOF'
import datetime, time
from aioquic.buffer import Buffer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger
from aioquic.quic.packet import pull_quic_header
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

key = ec.generate_private_key(ec.SECP256R1())
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
begin = datetime.datetime.now() - datetime.timedelta(1)
certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
               .serial_number(1).not_valid_before(begin).not_valid_after(begin + datetime.timedelta(10)).sign(key, hashes.SHA256()))
logs = {"client": QuicLogger(), "server": QuicLogger()}
of_client = QuicConfiguration(is_client=True, quic_logger=logs["client"], verify_mode=0, alpn_protocols=["x"])
of_server = QuicConfiguration(is_client=False, quic_logger=logs["server"], alpn_protocols=["x"])
of_server.certificate, of_server.private_key = certificate, key

now, server = 1000.0, None
client = QuicConnection(configuration=of_client)
client.connect(("10.0.0.2", 2), now=now)


def take(end, data, sender):
    end.receive_datagram(data, sender, now=now)
    while end.next_event():
        pass


# Each datagram is 10 ms on its way.
def round_trip(twice=None):
    global now, server
    sent = client.datagrams_to_send(now=now)
    now += .01
    for i, (data, _) in enumerate(sent):
        if not server:
            first = pull_quic_header(Buffer(data=data), host_cid_length=8)
            server = QuicConnection(configuration=of_server, original_destination_connection_id=first.destination_cid)
        for _ in range(2 if i == twice else 1):
            take(server, data, ("10.0.0.1", 1))
    sent = server.datagrams_to_send(now=now)
    now += .01
    for data, _ in sent:
        take(client, data, ("10.0.0.2", 2))
    for end in client, server:
        timer = end.get_timer()
        if timer and timer <= now:
            end.handle_timer(now=now)


for _ in range(6):
    round_trip()
client.send_stream_data(0, b"x" * 8000)
round_trip(twice=2)
for _ in range(5):
    round_trip()
now += 20
client.send_stream_data(0, b"x")
for _ in range(5):
    round_trip()

events = {who: log.to_dict()["traces"][0]["events"] for who, log in logs.items()}
for who, all_ in events.items():
    times = [e["time"] for e in all_]
    print(who + "_wall", abs(times[-1] / 1000 - time.time()) < 60)
    print(who + "_seconds", round((times[-1] - times[0]) / 1000, 1))
    print(who + "_dropped", *sorted({e["data"].get("trigger", "?") for e in all_ if e["name"].endswith("packet_dropped")}))
    print(who + "_lost", sum(e["name"].endswith("packet_lost") for e in all_))


def numbers(who, what):
    return [e["data"]["header"]["packet_number"] for e in events[who]
            if e["name"].endswith(what) and e["data"]["header"]["packet_type"] == "1RTT"]


print("caller_seconds", round(now - 1000, 1))
print("sent_and_received", numbers("client", "packet_sent") == numbers("server", "packet_received"))
rtts = [e["data"]["smoothed_rtt"] for e in events["client"] if "smoothed_rtt" in e["data"]]
print("rtt_ms", round(rtts[-1]) if rtts else "none")
EOF
"$python" "$work/both.py" >"$work/said"
said caller_seconds
for who in client server; do
	seen "the $who's qlog has the wall clock's time; the caller says it is 1970" "$(said ${who}_wall)" True
	seen_within "seconds from its first line to its last" "$(said ${who}_seconds)" 0 10
	seen "its packet_lost" "$(said ${who}_lost)" 0
done
seen 'triggers of packet_dropped, client' "$(said client_dropped)" header_parse_error
seen 'triggers of packet_dropped, server, which got one datagram twice' "$(said server_dropped)" 'duplicate header_parse_error'
seen_within 'seconds by the caller'\''s clock' "$(said caller_seconds)" 20 21
seen_within 'round trip in the client'\''s qlog, ms' "$(said rtt_ms)" 18 30
seen 'packets of 1-RTT sent are those received, one of them in two datagrams' "$(said sent_and_received)" True
done_
