#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# How clang reads a member of a packed structure in BPF, such as the type in an Ethernet header.
. "$(dirname "$0")/lib.sh"
. "$here/clang/clang.sh"

finding 'a 16-bit member of a packed header (ethhdr is one) is read by one instruction: the offset is even' \
	'it is read byte by byte and put together, 4 instructions, also as volatile, and more than 20 with 64 bits. Through a
       pointer, whose type is not packed, one does'

clangs
cat >"$work/program.c" <<'EOF'
typedef unsigned short u16;
typedef unsigned long long u64;
struct ethernet { char to[6], from[6]; u16 type; } __attribute__((packed));
struct packed { u64 a, b; } __attribute__((packed));
u16 member(struct ethernet *e) { return e->type; }
u16 volatile_member(volatile struct ethernet *e) { return e->type; }
u16 pointer(struct ethernet *e) { void *type = &e->type; return *(u16 *)type; }
u64 wide(struct packed *p) { return p->b; }
EOF
for version in 14 19; do
	count() { bpf $version "$1" -mcpu=v3 | grep -vc '^exit'; }
	loads() { bpf $version "$1" -mcpu=v3 | grep -c '= \*('; }
	seen "clang $version, member: loads of instructions" "$(loads member) of $(count member)" '2 of 4'
	seen "clang $version, volatile" "$(loads volatile_member) of $(count volatile_member)" '2 of 4'
	seen "clang $version, by a pointer" "$(loads pointer) of $(count pointer)" '1 of 1'
	seen "clang $version, 64 bits" "$(loads wide) of $(count wide)" '8 of 2[0-9]'
done
done_
