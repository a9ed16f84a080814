# SPDX-License-Identifier: MIT OR Apache-2.0
# What attacks on the series for the kernel's tree begin with.
DEV=pspacer0
tests=0
failed=0
check() { # NAME COMMAND...
	name=$1
	shift
	tests=$((tests + 1))
	said=$("$@" 2>&1) && echo "ok $tests - $name" || {
		echo "not ok $tests - $name"
		echo "$said" | sed 's/^/# /'
		failed=1
	}
}
between() { # LEAST MOST NUMBER
	echo "$3 is to be within $1 and $2"
	[ "$3" -ge "$1" ] && [ "$3" -le "$2" ]
}
