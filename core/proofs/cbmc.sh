#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Prints the path of a cbmc that runs on this machine: the installed one, or
# Debian's package, fetched without installing anything and without root
# (docs/decisions/dependencies.md, "CBMC, fetched but not installed", tools/debs.sh); the program
# is started by the loader of the
# C library that it was built with.
#
# usage: cbmc.sh
#   CBMC           a cbmc to use instead
#   PSPACER_CACHE  where packages are kept (~/.cache/pspacer)
set -eu

suite=trixie
top=$(cd "$(dirname "$0")/../.." && pwd)
packages='cbmc libc6 libgcc-s1 libstdc++6 minisat zlib1g'

die() {
	echo "cbmc.sh: $*" >&2
	exit 1
}

# Version 6 checks by default what older ones have to be asked for.
suits() {
	case "$("$1" --version 2>/dev/null)" in
	[6-9].* | [1-9][0-9].*) return 0 ;;
	esac
	return 1
}

if [ -n "${CBMC:-}" ]; then
	suits "$CBMC" || die "$CBMC is no cbmc of version 6 or later"
	echo "$CBMC"
	exit
fi
installed=$(command -v cbmc || true)
if [ -n "$installed" ] && suits "$installed"; then
	echo "$installed"
	exit
fi

cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pspacer}
folder=$cache/cbmc-$suite
program=$folder/cbmc
if [ -x "$program" ] && suits "$program"; then
	echo "$program"
	exit
fi

[ "$(uname -m)" = x86_64 ] || die "no package for $(uname -m): install cbmc 6 or name one with CBMC="
command -v apt-get >/dev/null || die "neither cbmc 6 nor apt-get here: install cbmc 6 or name one with CBMC="
mkdir -p "$cache"
exec 9>"$cache/cbmc-$suite.lock"
flock 9
if [ -x "$program" ] && suits "$program"; then
	echo "$program"
	exit
fi

new=$(mktemp -d "$cache/cbmc-new.XXXXXX")
trap 'rm -rf "$new"' EXIT
echo "cbmc.sh: fetching cbmc of $suite (33 MB and the lists of packages), once" >&2
# shellcheck disable=SC2086 # a list
"$top/tools/debs.sh" -x "$suite" "$new/root" $packages >&2 ||
	die "could not fetch cbmc of $suite: install cbmc 6 or name one with CBMC="
cat >"$new/cbmc" <<'EOF'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/root
exec "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path \
	"$root/usr/lib/x86_64-linux-gnu:$root/usr/lib" "$root/usr/bin/cbmc" "$@"
EOF
chmod +x "$new/cbmc"
suits "$new/cbmc" || die "the cbmc of $suite does not run here: $("$new/cbmc" --version 2>&1)"
rm -rf "$folder"
mv "$new" "$folder"
trap - EXIT
echo "$program"
