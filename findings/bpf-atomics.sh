#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Which instructions clang makes of atomic operations in BPF.
. "$(dirname "$0")/lib.sh"
. "$here/clang/clang.sh"

finding '-mcpu=v1 allows only what the oldest kernels know, so an atomic operation that gives a value back is refused;
       and __sync_fetch_and_add is a full barrier' \
	'with 64 bits atomic_fetch_add and cmpxchg come out of v1, too, which Linux knows from 5.12 on; and where nobody uses
       the value, an addition of whatever order becomes the one instruction that fetches nothing and orders nothing'

clangs
cat >"$work/program.c" <<'EOF'
static unsigned long long count;
void not_used(unsigned long long n) { __sync_fetch_and_add(&count, n); }
void not_used_seq_cst(unsigned long long n) { __atomic_fetch_add(&count, n, __ATOMIC_SEQ_CST); }
unsigned long long used(unsigned long long n) { return __sync_fetch_and_add(&count, n); }
unsigned long long exchanged(unsigned long long n) { return __sync_val_compare_and_swap(&count, n, 0); }
EOF
for version in 14 19; do
	for cpu in v1 v3; do
		on="clang $version, -mcpu=$cpu"
		seen "$on, value used" "$(bpf $version used -mcpu=$cpu | grep 'atomic\|lock\|error')" '*atomic_fetch_add(*'
		seen "$on, compare and swap" "$(bpf $version exchanged -mcpu=$cpu | grep 'xchg\|lock\|error')" '*cmpxchg_64(*'
		for function in not_used not_used_seq_cst; do
			seen "$on, $function" "$(bpf $version $function -mcpu=$cpu | grep 'atomic\|lock\|error')" \
				'lock \*(u64 \*)(r? + 0) += r?'
		done
	done
done
done_
