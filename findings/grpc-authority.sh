#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What name gRPC's clients give a server at a Unix socket.
. "$(dirname "$0")/lib.sh"

finding 'at a Unix socket the server is "localhost" to a client of gRPC, whatever language that is in' \
	'grpcio (the C core) gives it the path of the socket, percent-encoded and without the first slash; Go says
       "localhost" for the same target, and the encoded path with all slashes where a dialer is given the bare path, as a kubelet does'

python grpcio==1.85.3 hpack==4.2.0
cp -r "$here/grpc-authority" "$work/program"
go_program "$work/program"
echo 'with:  google.golang.org/grpc@v1.68.0'
# name COMMAND...: what the command calls the server at $work/socket.
name() {
	rm -f "$work/socket"
	"$python" "$here/grpc-authority/server.py" "$work/socket" 1 >"$work/told" 2>&1 &
	server=$!
	for _ in $(seq 100); do
		! grep -q ready "$work/told" || break
		sleep 0.1
	done
	"$@" >/dev/null 2>&1 || :
	wait $server || :
	tail -n 1 "$work/told"
}
encoded=$(echo "$work/socket" | sed 's,/,%2F,g')
for target in "unix:$work/socket" "unix://$work/socket"; do
	form=${target%"$work/socket"}
	seen "grpcio, ${form}PATH" "$(name "$python" "$here/grpc-authority/client.py" "$target")" "${encoded#%2F}"
	seen "Go, ${form}PATH" "$(name "$work/program/run" "$target")" localhost
done
seen 'Go, passthrough:///PATH' "$(name "$work/program/run" "passthrough:///$work/socket")" "$encoded"
done_
