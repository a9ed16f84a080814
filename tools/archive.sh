#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Prints apt sources of Debian suites: this machine's own archive, with the suite
# exchanged. This is a script because it runs before there is a Rust toolchain. The
# laboratory does the same in crates/lab/vmlab/src/sources.rs, which explains the method.
#
# usage: archive.sh SUITE...
set -eu

# apt knows every form of source and prints the address of each; it fetches nothing.
# Archives of others also call a suite "stable" or "bookworm", but only Debian's has
# updates or backports of it, so an archive with these goes first.
uri=$(apt-get update --print-uris | sed -n "s,^'\(.*\)/dists/\([^/]*\)/main/.*,\2 \1,p" |
	sed -nE 's/^(bullseye|bookworm|trixie|forky|duke|sid|(old)*stable|testing|unstable)(-updates|-backports)? /\3 /p' |
	awk 'NF == 2 && !sure { sure = $2 } NF == 1 && !first { first = $1 } END { print sure ? sure : first }')
if [ -z "$uri" ]; then
	echo "setup: apt's sources on this machine name no Debian archive (a suite as bookworm or stable, component main)" >&2
	exit 1
fi

# signed_by: prints the archive's keys, which apt does not print: Signed-By of the stanza,
# or signed-by of the line, that names the archive.
eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
signed_by() {
	for file in "$list" "$parts"/*.list "$parts"/*.sources; do
		[ -f "$file" ] || continue
		# An empty line ends a stanza, also between two files.
		cat "$file"
		echo
	done | awk -v uri="$uri" '
		function same(word) { sub(/\/*$/, "", word); return word == wanted }
		function end_of_stanza() {
			if (ours && !found) { print value; found = 1 }
			ours = 0; value = ""; inside = ""
		}
		BEGIN { wanted = uri; sub(/\/*$/, "", wanted) }
		/^#/ { next }
		/^deb[ \t]/ {
			keys = ""
			if (match($0, /signed-by=[^] \t]*/)) keys = substr($0, RSTART + 10, RLENGTH - 10)
			gsub(/,/, " ", keys)
			for (i = 2; i <= NF; i++) if (same($i)) { ours = 1; value = keys }
			end_of_stanza()
			next
		}
		/^[ \t]*$/ { end_of_stanza(); next }
		/^[ \t]/ {
			if (inside == "signed-by") value = value "\n" $0
			if (inside == "uris") for (i = 1; i <= NF; i++) if (same($i)) ours = 1
			next
		}
		{
			inside = tolower($0); sub(/:.*/, "", inside)
			rest = $0; sub(/^[^:]*:[ \t]*/, "", rest)
			if (inside == "signed-by") value = rest
			if (inside == "uris") { n = split(rest, words); for (i = 1; i <= n; i++) if (same(words[i])) ours = 1 }
		}
		END { end_of_stanza() }'
}
keys=$(signed_by)

for suite in "$@"; do
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n' "$uri" "$suite"
	[ -z "$keys" ] || printf 'Signed-By: %s\n' "$keys"
	echo
done
