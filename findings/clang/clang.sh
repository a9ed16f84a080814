#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What the findings about clang's BPF target share. A script sources lib.sh before this.
: "${work:?}"

# clangs: unpacks clang 14 and 19.
clangs() {
	packages "$work/14" bookworm clang-14=1:14.0.6-12
	packages "$work/19" trixie clang-19=1:19.1.7-3+b1
	mkdir -p "$work/14/tmp" "$work/19/tmp"
}
# bpf VERSION FUNCTION OPTION...: instructions of a function of $work/program.c, one a line, or clang's first error.
bpf() {
	cp "$work/program.c" "$work/$1/tmp/program.c"
	version=$1 function=$2
	shift 2
	inside "$work/$version" "clang-$version" --target=bpf -O2 "$@" -S /tmp/program.c -o /tmp/program.s \
		>"$work/messages" 2>&1 || {
		sed -n 's/.*error: //p' "$work/messages" | head -n 1
		return
	}
	awk -v wanted="$function:" '
		/^[^ \t.L#]/ { inside = $1 == wanted; next }
		inside && /^\t[^.]/ { sub(/^\t/, ""); print }
	' "$work/$version/tmp/program.s"
}
