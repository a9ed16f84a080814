#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Writes compile_commands.json, by which an editor (clangd) opens each file of core/src and kernel alone.
# Each is part of one unit: what the unit has before a file is put before it, in a header of its own below
# build/compile-commands. Then asks clang whether it understands each file so. The module's flags are those
# that the kernel's build takes: of the running kernel, or of one that the laboratory has unpacked.
#
# usage: [KERNEL_BUILD=FOLDER] compile-commands.sh
set -eu

cd "$(dirname "$0")/.."
root=$PWD
made=$root/build/compile-commands
rm -rf "$made"
mkdir -p "$made"
entries=$made/entries
: >"$entries"

# quoted: prints each line of the input as a string of JSON, with commas between them.
quoted() {
	sed 's/[\\"]/\\&/g; s/.*/"&"/' | paste -sd, -
}

# entry FILE FLAGS: adds a file with its flags, a line each.
entry() {
	printf '{"directory":%s,"file":%s,"arguments":[%s]}\n' "$(echo "$root" | quoted)" \
		"$(echo "$1" | quoted)" "$( (echo clang && cat "$2" && echo -c && echo "$1") | quoted)" >>"$entries"
	if ! xargs -d '\n' clang-19 -fsyntax-only -w "$1" <"$2"; then
		echo "compile-commands: $1: clang does not understand it alone" >&2
		exit 1
	fi
}

# unit FILE FLAGS: adds a unit and each file that it includes from beside it.
unit() {
	entry "$1" "$2"
	folder=$(dirname "$1")
	grep -n '^#include "[a-z_/]*\.c"' "$1" | while IFS=: read -r line included; do
		name=$(echo "$included" | cut -d'"' -f2)
		before=$made/$(echo "$folder/$name" | tr / -).h
		head -n $((line - 1)) "$1" >"$before"
		(cat "$2" && printf '%s\n' -iquote "$folder" -include "$before") >"$before.flags"
		entry "$folder/$name" "$before.flags"
	done
}

printf '%s\n' -std=gnu11 -Icore/include -Icore/deps/host >"$made/core.flags"
unit core/pace.c "$made/core.flags"

laboratory=${PSPACER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pspacer}
build=${KERNEL_BUILD:-/lib/modules/$(uname -r)/build}
[ -d "$build" ] || build=$(find "$laboratory" -maxdepth 6 -path '*/usr/src/linux-headers-*-amd64' 2>/dev/null | sort | head -n 1)
if [ -d "$build" ]; then
	mkdir "$made/module"
	cp -R --parents core uapi kernel "$made/module"
	libraries=${build%/usr/src/*}/usr/lib/x86_64-linux-gnu
	if ! LD_LIBRARY_PATH=$libraries make -s -C "$build" M="$made/module/kernel" CC=cc CROSS_COMPILE= \
		CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$made/module.log" 2>&1; then
		cat "$made/module.log" >&2
		exit 1
	fi
	# What clang knows of the flags; kbuild names headers below its own folder without it.
	sed -n '1s/^[^=]*= *//p' "$made/module/kernel/.sch_psp.o.cmd" | xargs -n 1 printf '%s\n' |
		sed "s|$made/module|$root|" |
		awk -v build="$build" '
			after { print after; print path($0); after = ""; next }
			/^-(include|isystem)$/ { after = $0; next }
			/^-I/ { print "-I" path(substr($0, 3)); next }
			/^-(D|std=|nostdinc|fshort-wchar|m64|mcmodel=)/
			function path(p) { return p ~ /^\// ? p : build "/" p }' >"$made/kernel.flags"
	unit kernel/sch_psp.c "$made/kernel.flags"
else
	echo "compile-commands: no build tree of a kernel: kernel/ is left out; KERNEL_BUILD names one" >&2
fi

{ echo "[" && sed '$!s/$/,/' "$entries" && echo "]"; } >compile_commands.json
echo "compile-commands: $(wc -l <"$entries") files"
