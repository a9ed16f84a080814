#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: `apply` is killed at each of its system calls that may change
# something, one run after the other, and run again. It ends with the same options, classes,
# filters and byte queue limits each time, priorities included, and `remove` puts back what was
# before.
#
# usage: killed.sh EVERY
#   EVERY  tries every call, or one in so many

. /changes/lib.sh

# driver WORDS COMMAND...: has the command do in the guest what tests/changes_lab.rs says.
driver() {
	words=$1
	shift
	CHANGES=$words "$@" /changes/ld.so --library-path /changes /changes/test \
		--exact changes_lab::in_guest --ignored --nocapture --test-threads 1 >/tmp/said 2>&1
}
must() { driver "$1" env || { cat /tmp/said; return 1; }; }

cable c1 200000000 sink=1
must expect
call=1
while driver second /changes/kill-at $call && status=0 || status=$?; [ $status = 0 ]; do
	must again || { echo "killed at call $call"; exit 1; }
	call=$((call + $1))
done
[ $status = 1 ] || { cat /tmp/said; exit 1; }
must again
echo "killed at one in $1 of $((call - 1)) system calls"
[ $call -gt 20 ]
