#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# How many operations a transaction of etcd may have.
. "$(dirname "$0")/lib.sh"
. "$here/etcd/etcd.sh"

finding 'a transaction has at most 128 operations (--max-txn-ops)' \
	'that counts compares, operations on success and on failure each for itself, and a transaction within one as a
       single operation that may have what the outer one left over: 64 with 64 each are 4096 puts at one revision'

# puts FROM N: so many puts in JSON.
puts() {
	awk -v from="$1" -v n="$2" 'BEGIN {
		for (i = from; i < from + n; i++)
			printf "%s{\"request_put\":{\"key\":\"@k%05d\",\"value\":\"@v\"}}", i == from ? "" : ",", i
	}'
}
# nested N EACH: a transaction with N transactions, each with EACH puts.
nested() {
	printf '{"success":['
	for i in $(seq 0 $(($1 - 1))); do
		[ "$i" = 0 ] || printf ,
		printf '{"request_txn":{"success":[%s]}}' "$(puts $((i * $2)) "$2")"
	done
	printf ']}'
}
for version in 3.4.23-4+b4 3.5.16-4; do
	etcd_of "$version"
	port=$(free_ports 1)
	etcd_start "$version" "$port"
	seen "$version, 129 puts" "$(ask "$port" kv/txn "{\"success\":[$(puts 0 129)]}")" '400 *too many operations*'
	both=$(ask "$port" kv/txn "{\"success\":[$(puts 0 128)],\"failure\":[$(puts 0 128)]}" | cut -c 1-3)
	seen "$version, 128 on success and 128 on failure" "$both" 200
	ask "$port" kv/deleterange '{"key":"@k","range_end":"@l"}' >/dev/null
	seen "$version, 10 with 100 puts each" "$(nested 10 100 | ask "$port" kv/txn - | cut -c 1-3)" 200
	seen "$version, 10 with 119 puts each" "$(nested 10 119 | ask "$port" kv/txn -)" '400 *too many operations*'
	seen "$version, keys there" "$(ask "$port" kv/range '{"key":"@k","range_end":"@l","count_only":true}')" \
		'200 {"count":"1000"}'
	revisions=$(ask "$port" kv/range '{"key":"@k","range_end":"@l"}' | grep -o '"mod_revision":"[0-9]*"' | sort -u | wc -l)
	seen "$version, their revisions" "$revisions" 1
	kill "$etcd"
done
done_
