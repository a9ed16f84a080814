#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What etcd still does when its database is full, and what makes room.
. "$(dirname "$0")/lib.sh"
. "$here/etcd/etcd.sh"

finding 'a full etcd only reads; compacting and ending the alarm (or deleting) makes it write again' \
	'it deletes and keeps leases alive, and grants none; a transaction with a put is refused also where the put is in
       the branch that is not taken; compacting frees nothing that it counts, only defragmenting does; and ending an alarm
       without its member succeeds and ends nothing'

for version in 3.4.23-4+b4 3.5.16-4; do
	etcd_of "$version"
	port=$(free_ports 1)
	# 2 MiB. Each put is of 200 kB.
	etcd_start "$version" "$port" --quota-backend-bytes 2097152
	ask "$port" lease/grant '{"ID":"7","TTL":"600"}' >/dev/null
	ask "$port" kv/put '{"key":"@small","value":"@v"}' >/dev/null
	put() {
		python3 -c 'print("{\"key\":\"@large\",\"value\":\"@" + "v" * 200000 + "\"}")' | ask "$port" kv/put -
	}
	n=0
	while [ $n -lt 40 ] && case $(put) in 200*) : ;; *) false ;; esac do
		n=$((n + 1))
	done
	refused='4?? *database space exceeded*'
	seen "$version, alarm" "$(ask "$port" maintenance/alarm '{}')" '*"alarm":"NOSPACE"*'
	seen "$version, put of a byte" "$(ask "$port" kv/put '{"key":"@small","value":"@w"}')" "$refused"
	seen "$version, lease" "$(ask "$port" lease/grant '{"TTL":"600"}')" "$refused"
	seen "$version, keepalive" "$(ask "$port" lease/keepalive '{"ID":"7"}')" '200 *"TTL":"600"*'
	never='"compare":[{"key":"@none","target":"VERSION","version":"5"}]'
	delete='{"request_delete_range":{"key":"@none"}}'
	seen "$version, transaction that does not put" \
		"$(ask "$port" kv/txn "{$never,\"success\":[{\"request_put\":{\"key\":\"@a\"}}],\"failure\":[$delete]}")" "$refused"
	seen "$version, transaction without a put" "$(ask "$port" kv/txn "{$never,\"failure\":[$delete]}")" '200 *'
	seen "$version, delete" "$(ask "$port" kv/deleterange '{"key":"@large"}')" '200 {"deleted":"1"}'
	revision=$(python3 -c 'import json, sys, urllib.request as u
answer = u.urlopen(f"http://127.0.0.1:{sys.argv[1]}/v3/kv/range", b"{\"key\":\"YQ==\"}")
print(json.load(answer)["header"]["revision"])' "$port")
	ask "$port" kv/compaction "{\"revision\":\"$revision\",\"physical\":true}" >/dev/null
	alarm() { ask "$port" maintenance/alarm "{\"action\":\"$1\",\"alarm\":\"NOSPACE\",\"memberID\":\"$2\"}"; }
	member=$(alarm GET 0 | grep -o '"memberID":"[0-9]*"' | grep -o '[0-9]*')
	seen "$version, alarm ended without a member" "$(alarm DEACTIVATE 0)" '200 {}'
	seen "$version, alarm then" "$(alarm GET 0)" '*"alarm":"NOSPACE"*'
	alarm DEACTIVATE "$member" >/dev/null
	seen "$version, alarm ended with its member" "$(alarm GET 0)" '200 {}'
	seen "$version, large put when compacted" "$(put)" "$refused"
	seen "$version, alarm then" "$(alarm GET 0)" '*"alarm":"NOSPACE"*'
	ask "$port" maintenance/defragment '{}' >/dev/null
	seen "$version, put of a byte when defragmented" "$(ask "$port" kv/put '{"key":"@small","value":"@w"}')" "$refused"
	alarm DEACTIVATE "$member" >/dev/null
	seen "$version, large put when the alarm is ended again" "$(put)" '200 {}'
	seen "$version, puts that had made it full" "$n" '*'
	kill "$etcd"
done
done_
