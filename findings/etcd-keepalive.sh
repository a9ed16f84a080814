#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What etcd answers to who keeps a lease alive that is gone, and how short a lease can be.
. "$(dirname "$0")/lib.sh"
. "$here/etcd/etcd.sh"

finding 'keeping a lease alive that has ended is an error, as revoking it is; and a lease is as long as was asked for' \
	'it is answered as a success, 200 with the ID and no TTL, and goes on being so; a lease is never shorter than one
       and a half times --election-timeout, 8 s if that is 5 s'

for version in 3.4.23-4+b4 3.5.16-4; do
	etcd_of "$version"
	port=$(free_ports 1)
	etcd_start "$version" "$port"
	ask "$port" lease/grant '{"ID":"7","TTL":"30"}' >/dev/null
	seen "$version, keepalive of a lease" "$(ask "$port" lease/keepalive '{"ID":"7"}')" \
		'200 {"result":{"ID":"7","TTL":"30"}}'
	ask "$port" lease/revoke '{"ID":"7"}' >/dev/null
	for _ in 1 2; do
		seen "$version, when it is gone" "$(ask "$port" lease/keepalive '{"ID":"7"}')" '200 {"result":{"ID":"7"}}'
	done
	seen "$version, how long it has" "$(ask "$port" lease/timetolive '{"ID":"7"}')" '200 {"ID":"7","TTL":"-1"}'
	seen "$version, revoking it" "$(ask "$port" lease/revoke '{"ID":"7"}')" '404 *requested lease not found*'
	seen "$version, a lease of 1 s" "$(ask "$port" lease/grant '{"ID":"8","TTL":"1"}')" '200 {"ID":"8","TTL":"2"}'
	kill "$etcd"
	port=$(free_ports 1)
	etcd_start "$version" "$port" --heartbeat-interval 500 --election-timeout 5000
	seen "$version, a lease of 1 s where elections take 5 s" "$(ask "$port" lease/grant '{"ID":"8","TTL":"1"}')" \
		'200 {"ID":"8","TTL":"8"}'
	kill "$etcd"
done
done_
