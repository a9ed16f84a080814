#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Whether a watch that starts at the compacted revision sees the deletion that this revision was.
. "$(dirname "$0")/lib.sh"
. "$here/etcd/etcd.sh"

finding 'what was compacted at revision N can be read and watched from N on, so a watch from N sees what N changed' \
	'in etcd 3.4 it does not see a deletion that N was, though nothing is said to be compacted; in 3.5.16 it does'

for version in 3.4.23-4+b4 3.5.16-4; do
	etcd_of "$version"
	port=$(free_ports 1)
	etcd_start "$version" "$port"
	for key in deleted put; do
		ask "$port" kv/put "{\"key\":\"@$key\",\"value\":\"@v\"}" >/dev/null
	done
	# from REVISION: what a watch from there sees.
	from() {
		ask "$port" watch "{\"create_request\":{\"key\":\"@a\",\"range_end\":\"@z\",\"start_revision\":\"$1\"}}" 2 |
			tail -n +3 | tr '\n' ' '
	}
	revisions() { grep -o '"mod_revision":"[0-9]*"' | grep -o '[0-9]*' | tr '\n' ' '; }
	ask "$port" kv/deleterange '{"key":"@deleted"}' >/dev/null
	ask "$port" kv/put '{"key":"@put","value":"@w"}' >/dev/null
	case $version in 3.4*) after='5 ' ;; *) after='4 5 ' ;; esac
	seen "$version, from the deletion at 4 on" "$(from 4 | revisions)" '4 5 '
	ask "$port" kv/compaction '{"revision":"4","physical":true}' >/dev/null
	seen "$version, when compacted at 4" "$(from 4 | revisions)" "$after"
	seen "$version, a read at 4" "$(ask "$port" kv/range '{"key":"@put","revision":"4"}')" '200 *"count":"1"*'
	seen "$version, a watch from 3" "$(from 3)" '*"canceled":true,"compact_revision":"4"*'
	ask "$port" kv/compaction '{"revision":"5","physical":true}' >/dev/null
	seen "$version, from the put at 5 on, compacted at 5" "$(from 5 | revisions)" '5 '
	kill "$etcd"
done
done_
