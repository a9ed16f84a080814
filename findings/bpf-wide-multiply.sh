#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What clang makes of products of more than 64 bits in BPF.
. "$(dirname "$0")/lib.sh"
. "$here/clang/clang.sh"

finding 'unsigned __int128 and __builtin_mul_overflow, which is what overflow checks of C are made of, work as elsewhere' \
	'clang knows the types and refuses to multiply: also the overflow of a 64-bit product by a constant, whose check is
       a comparison, calls __multi3, which no BPF program has. With 32 bits they work, and a division finds it by hand'

clangs
# One function each: an error hides what else there is.
for version in 14 19; do
	refused="A call to built-in function '__multi3' is not supported.*"
	echo 'int f(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 100; }' >"$work/program.c"
	seen "clang $version, 128 bits" "$(bpf $version f -mcpu=v3)" "$refused"
	echo 'int f(unsigned long long a, unsigned long long *to) { return __builtin_mul_overflow(a, 1000, to); }' \
		>"$work/program.c"
	seen "clang $version, overflow of 64 bits times a constant" "$(bpf $version f -mcpu=v3)" "$refused"
	echo 'int f(unsigned a, unsigned *to) { return __builtin_mul_overflow(a, 1000, to); }' >"$work/program.c"
	seen "clang $version, overflow of 32 bits" "$(bpf $version f -mcpu=v3 | tail -n 1)" exit
	echo 'int f(unsigned long long a) { return a > ~0ull / 1000; }' >"$work/program.c"
	seen "clang $version, the check by hand" "$(bpf $version f -mcpu=v3 | tail -n 1)" exit
	echo 'int f(unsigned long long a, unsigned long long *to) { return __builtin_add_overflow(a, 1000, to); }' \
		>"$work/program.c"
	seen "clang $version, overflow of a sum of 64 bits" "$(bpf $version f -mcpu=v3 | tail -n 1)" exit
done
done_
