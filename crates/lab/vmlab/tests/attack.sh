# SPDX-License-Identifier: MIT OR Apache-2.0
# What attacks on the series for the kernel's tree begin with; lab_upstream.rs puts it in front of each.
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
stats() { tc -s qdisc show dev $DEV root; }
sent() { stats | sed -n 's/.* \([0-9]*\) pkt .*/\1/p' | head -n 1; }
end() {
	check "the kernel has nothing to complain about" \
		sh -c '! dmesg | grep -e "WARNING:" -e "BUG:" -e "cut here" -e "stall"'
	echo "1..$tests"
	exit $failed
}

echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
ip link add $DEV type dummy
ip addr add 10.9.0.1/24 dev $DEV
ip link set $DEV up
