#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes the patch series that brings psp into iproute2, out of the committed sources: the
# header of the netlink interface, tc/q_psp.c and the man page. Compiles the result in a
# copy of that tree, checks that its tc knows psp, and checks each patch with checkpatch.
#
# usage: iproute2.sh IPROUTE2 OUT
#   IPROUTE2    a folder with iproute2's sources; it is only read
#   OUT         is made; the patches of an earlier run are replaced
#   CHECKPATCH  the kernel's scripts/checkpatch.pl; without it patches are not checked
#
# The patches are signed off by git's user (user.name, user.email).
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
die() {
	echo "iproute2.sh: $*" >&2
	exit 1
}
[ $# = 2 ] || {
	echo "usage: $0 IPROUTE2 OUT" >&2
	exit 2
}
[ -d "$1" ] || die "$1: no folder"
iproute2=$(cd "$1" && pwd)
for file in tc/Makefile tc/tc_util.h man/man8/tc.8 include/uapi/linux/pkt_sched.h; do
	[ -f "$iproute2/$file" ] || die "$iproute2: no $file: expected a folder with iproute2's sources"
done
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=$work/sources
tree=$work/tree
mkdir "$sources"
git -C "$top" archive HEAD tc uapi docs/man packaging/upstream | tar -x -f - -C "$sources"
cp -R "$iproute2" "$tree"
rm -rf "$tree/.git"
git -C "$tree" init -q
git -C "$tree" add --force .
git -C "$tree" -c user.name=base -c user.email=base@example.org commit -q -m base
git -C "$tree" tag base

# commit SUBJECT <BODY: checkpatch wants lines of at most 75 characters.
commit() {
	git -C "$tree" add .
	{ printf '%s\n\n' "$1" && fmt -w 72; } >"$work/message"
	git -C "$tree" commit -q -s -F "$work/message"
}

# between FROM TO FILE: the lines of a file from one pattern to another.
between() {
	sed -n "/$1/,/$2/p" "$sources/tc/$3"
	echo
}

# code NAME: a file of the plugin as a part of q_psp.c, whose functions are its own.
code() {
	sed -e '/SPDX-License-Identifier/d' -e '/^#include "\.\.\/uapi/!{/^#include/d}' \
		-e 's,"\.\./uapi/sch_psp_stats\.h","psp_stats.h",' \
		-e 's/^\(bool\|int\|void\|const char \*\|const struct psp_words \)\(psp_[a-z_]*[( ]\)/static \1\2/' \
		-e 's/^\(bool\|int\|void\) \(psp_[a-z_]*(\)/static \1 \2/' "$sources/tc/$1.c"
	echo
}

cp "$sources/uapi/sch_psp.h" "$tree/include/uapi/linux/sch_psp.h"
commit "uapi: add the header of the qdisc psp" <<'END'
Import include/uapi/linux/sch_psp.h: attributes and statistics of psp.
END

{
	cat <<'END'
// SPDX-License-Identifier: GPL-2.0-only
/*
 * psp, precise software pacing: options, statistics.
 */

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/sch_psp.h>

#include "utils.h"
#include "tc_util.h"

END
	between '^\/\* An option' '^};' psp.h
	sed -n "/^#define PSP_QUANTITY_TEXT/p" "$sources/tc/quantity.h"
	echo
	code quantity
	code q_psp | perl -0pe 's,\n/\*\n \* The qdisc has two names:.*,\n,s'
	code print
	code stats
	code parse
	echo '/* psp is the kind outside of the kernel tree. */'
	sed -n '/^#define PSP_QDISC_UTIL/,$p' "$sources/tc/q_psp.c" | sed '/^__attribute__/d'
	echo
} | cat -s | sed '$d' >"$tree/tc/q_psp.c"
# Before 6.9 functions take their qdisc_util as one that they may change.
grep -q 'const struct qdisc_util \*qu' "$tree/tc/tc_util.h" ||
	sed -i 's/const struct qdisc_util \*qu/struct qdisc_util *qu/' "$tree/tc/q_psp.c"
cp "$sources/uapi/sch_psp_stats.h" "$tree/tc/psp_stats.h"
sed -i 's/^TCMODULES += q_plug\.o$/&\nTCMODULES += q_psp.o/' "$tree/tc/Makefile"
grep -q '^TCMODULES += q_psp' "$tree/tc/Makefile" || die "$iproute2/tc/Makefile has no q_plug.o, after which psp goes"
commit "tc: add the qdisc psp" <<'END'
psp paces classes of a device by counting bytes. Add its options and its
statistics. Rates, sizes and times are parsed and printed as exact integers,
because a rate that goes through floating point is not the one that was asked
for. psp_stats.h is the table of statistics that the kernel is compiled with, too.
END

cp "$sources/docs/man/tc-psp.8" "$tree/man/man8/tc-psp.8"
commit "man: add tc-psp.8" <<'END'
Describe options, statistics and errors of the qdisc psp.
END

rm -f "$out"/*.patch
git -C "$tree" format-patch -q --subject-prefix='RFC PATCH iproute2-next' -o "$out" base

if ! (cd "$tree" && ./configure && make SUBDIRS="lib tc") >"$work/log" 2>&1; then
	grep -e error: -e warning: "$work/log" >&2 || tail -n 5 "$work/log" >&2
	die "the tree with psp does not compile"
fi
grep -A 2 'q_psp.*warning:' "$work/log" >&2 && die "q_psp.c compiles with warnings"
for kind in psp pspacer; do
	"$tree/tc/tc" qdisc add dev none root $kind help 2>&1 | grep -q '^Usage: \.\.\. psp' ||
		die "the tc of the tree does not know $kind"
done

complaints=$work/complaints
: >"$complaints"
if [ -n "${CHECKPATCH:-}" ]; then
	cp "$CHECKPATCH" "$work/checkpatch.pl"
	for patch in "$out"/0*.patch; do
		# A row of the table of statistics becomes a statement, semicolon included.
		(cd "$work" && perl checkpatch.pl --no-tree --no-summary --terse --show-types \
			--ignore FILE_PATH_CHANGES,MULTISTATEMENT_MACRO_USE_DO_WHILE,TRAILING_SEMICOLON \
			"$patch") 2>/dev/null >>"$complaints" || true
	done
	cat "$complaints"
else
	echo "iproute2.sh: CHECKPATCH is not set, so the patches are not checked" >&2
fi
ls "$out"/*.patch | wc -l | sed 's/$/ patches, compiled/'
[ ! -s "$complaints" ]
