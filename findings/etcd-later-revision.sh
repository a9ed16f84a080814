#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a watch sees whose revision is later than etcd's, as after a restored backup.
. "$(dirname "$0")/lib.sh"
. "$here/etcd/etcd.sh"

finding 'a watch that goes on at a revision that etcd does not have (after a restored backup) fails, as a read does' \
	'it is created and stays open, and changes pass it unseen until the revision is reached: nothing says so'

for version in 3.4.23-4+b4 3.5.16-4; do
	etcd_of "$version"
	port=$(free_ports 1)
	etcd_start "$version" "$port"
	ask "$port" watch '{"create_request":{"key":"@k","start_revision":"5"}}' 6 >"$work/late" &
	late=$!
	ask "$port" watch '{"create_request":{"key":"@k"}}' 6 >"$work/now" &
	now=$!
	for _ in $(seq 50); do
		[ "$(cat "$work/late" "$work/now" | grep -c created)" = 2 ] && break
		sleep 0.1
	done
	for value in 2 3 4 5; do
		ask "$port" kv/put "{\"key\":\"@k\",\"value\":\"@$value\"}" >/dev/null
	done
	seen "$version, a read at revision 9 of 5" "$(ask "$port" kv/range '{"key":"@k","revision":"9"}')" \
		'400 *required revision is a future revision*'
	wait $late
	wait $now
	seen "$version, the watch from revision 5" "$(head -n 1 "$work/late") $(tail -n 1 "$work/late")" '200 open'
	events() { grep -o '"mod_revision":"[0-9]*"' "$1" | grep -o '[0-9]*' | tr '\n' ' '; }
	seen "$version, what it saw" "$(events "$work/late")" '5 '
	seen "$version, what a watch from now on saw" "$(events "$work/now")" '2 3 4 5 '
	kill "$etcd"
done
done_
