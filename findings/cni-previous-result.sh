#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a plugin in a chain of CNI finds in prevResult, by libcni's own cnitool.
. "$(dirname "$0")/lib.sh"

finding 'on DEL and CHECK a plugin finds in prevResult what it found there on ADD, and a chain whose ADD fails is undone' \
	'it finds what the whole chain had made, with what plugins after it added. After an ADD that failed libcni calls no
       DEL, and the DEL of the runtime has no prevResult at all, or that of an earlier ADD of the same name'

command -v go >/dev/null || cannot "there is no go"
GOBIN=$work/bin GOPATH=$cache/go GOCACHE=$cache/go-build GOFLAGS=-modcacherw \
	go install github.com/containernetworking/cni/cnitool@v1.3.0 2>"$work/messages" || {
	tail -n 3 "$work/messages" >&2
	exit 3
}
echo 'with:  github.com/containernetworking/cni@v1.3.0'
mkdir -p "$work/plugins" "$work/networks" "$work/state"
for name in one two three; do
	cp "$here/cni-previous-result/plugin.py" "$work/plugins/$name"
	chmod +x "$work/plugins/$name"
done
echo '{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"one"},{"type":"two"},{"type":"three"}]}' \
	>"$work/networks/10-n.conflist"
# call COMMAND [FAILS]: what plugins were told. libcni keeps its results below /var/lib.
call() {
	: >"$work/notes"
	# shellcheck disable=SC2016
	CNI_PATH=$work/plugins NETCONFPATH=$work/networks NOTES=$work/notes FAILS=${2:-} unshare --mount sh -c '
		mount --bind "$1/state" /var/lib && "$1/bin/cnitool" "$2" n /proc/self/ns/net
	' - "$work" "$1" >"$work/messages" 2>&1 && status=0 || status=$?
	echo "status $status: $(cat "$work/notes")"
}
seen 'add' "$(call add)" 'status 0: ADD one nothing; ADD two one; ADD three one,two; '
seen 'check' "$(call check)" \
	'status 0: CHECK one one,two,three; CHECK two one,two,three; CHECK three one,two,three; '
seen 'del' "$(call del)" 'status 0: DEL three one,two,three; DEL two one,two,three; DEL one one,two,three; '
failed='status 1: ADD one nothing; ADD two one; ADD three one,two; '
seen 'add that fails' "$(call add three)" "$failed"
seen 'del after it' "$(call del)" 'status 0: DEL three nothing; DEL two nothing; DEL one nothing; '
call add >/dev/null
seen 'add that fails behind one that did not' "$(call add two)" 'status 1: ADD one nothing; ADD two one; '
seen 'del after it' "$(call del)" 'status 0: DEL three one,two,three; DEL two one,two,three; DEL one one,two,three; '
done_
