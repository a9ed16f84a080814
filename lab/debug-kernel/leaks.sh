#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# leaks.sh COMMAND...: runs it; fails also if kmemleak finds memory afterwards
# that nothing points to. Without kmemleak it is the command alone.
leaks=/sys/kernel/debug/kmemleak

[ -e $leaks ] && echo clear >$leaks
"$@"
status=$?
[ -e $leaks ] || exit $status
# What is younger than five seconds is not looked at, and what is freed by RCU
# takes its time; a second scan drops what only moved during the first.
sleep 6
echo scan >$leaks
echo scan >$leaks
if [ -n "$(cat $leaks)" ]; then
	echo "not ok - kmemleak"
	cat $leaks
	exit 1
fi
exit $status
