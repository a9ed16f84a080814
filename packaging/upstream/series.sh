#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes the first patch series for a kernel's tree out of the committed sources: the qdisc
# pspacer, whose scheduler take.pl takes from core/ by the names of its functions. Checks each
# patch with that tree's checkpatch. docs/contribute/upstream.md says what is in the series.
#
# usage: series.sh KERNEL OUT
#   KERNEL      a folder with the kernel's sources; it is only read. Of the files that patches
#               change, those of the specification, of selftests and of documents may be absent:
#               their entries are left out, and that is said
#   OUT         is made; the patches of an earlier run are replaced
#   CHECKPATCH  another checkpatch.pl than KERNEL's
#
# The patches are signed off by git's user (user.name, user.email).
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
die() {
	echo "series.sh: $*" >&2
	exit 1
}
[ $# = 2 ] || {
	echo "usage: $0 KERNEL OUT" >&2
	exit 2
}
[ -d "$1" ] || die "$1: no folder"
kernel=$(cd "$1" && pwd)
checkpatch=${CHECKPATCH:-$kernel/scripts/checkpatch.pl}
kconfig=net/sched/Kconfig
makefile=net/sched/Makefile
uapi=include/uapi/linux/pkt_sched.h
for file in $kconfig $makefile $uapi; do
	[ -f "$kernel/$file" ] || die "$kernel: no $file: expected a folder with the kernel's sources"
done
[ -f "$checkpatch" ] || die "$checkpatch: no such file: expected the kernel's checkpatch.pl"
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=$work/sources
tree=$work/tree
first=$sources/packaging/upstream/first
mkdir "$sources" "$tree"
git -C "$top" archive HEAD core packaging/upstream/first | tar -x -f - -C "$sources"

specification=Documentation/netlink/specs/tc.yaml
selftests=tools/testing/selftests/net
tdc=tools/testing/selftests/tc-testing
index=Documentation/networking/index.rst
git -C "$tree" init -q
for file in $kconfig $makefile $uapi $specification $selftests/Makefile $selftests/config \
	$tdc/config $index; do
	[ -f "$kernel/$file" ] || continue
	mkdir -p "$tree/$(dirname "$file")"
	cp "$kernel/$file" "$tree/$file"
done
git -C "$tree" add .
git -C "$tree" -c user.name=base -c user.email=base@example.org commit -q -m base
git -C "$tree" tag base

# commit SUBJECT <BODY: checkpatch wants lines of at most 75 characters.
commit() {
	git -C "$tree" add .
	{ printf '%s\n\n' "$1" && fmt -w 72; } >"$work/message"
	git -C "$tree" commit -q -s -F "$work/message"
}

# change FILE PERL: changes a file that KERNEL may lack. Perl has to change something.
change() {
	[ -f "$tree/$1" ] || {
		echo "series.sh: $kernel has no $1: its entry is left out" >&2
		return 0
	}
	perl -0pi -e "$2" "$tree/$1"
	! git -C "$tree" diff --quiet -- "$1" || die "$kernel/$1: no place for the entry of pspacer"
}

# part KEY: what tc.yaml of ours has below a key.
part() {
	sed -n "/^$1:\$/,/^[a-z]/{/^[a-z]/!p}" "$first/tc.yaml"
}

attributes=$(sed 1d "$first/pkt_sched_pspacer.h") change $uapi 's/\n#endif\s*\z/$ENV{attributes}\n\n#endif\n/'
commit "net/sched: add the netlink attributes of pspacer" <<'END'
pspacer will be a qdisc whose classes have exact rates. Add its options and its
statistics. Rates are bits per second as integers of 64 bits, because a rate that
is rounded is not the one that was asked for. Qdisc and class have one set of
attributes, because a specification selects it by the kind.
END

perl "$first/take.pl" "$sources/core" <"$first/sch_pspacer.c.in" >"$tree/net/sched/sch_pspacer.c"
option='config NET_SCH_PSPACER
	tristate "Precise packet spacing (PSPACER)"
	help
	  Say Y here if you want classes that send at exact rates, each packet at
	  its own instant, so that shallow queues behind this host see no bursts.
	  See <file:Documentation/networking/pspacer.rst>.

	  To compile this code as a module, choose M here: the module will be
	  called sch_pspacer.

	  If unsure, say N.

'
option=$option change $kconfig 's/(?=^config NET_SCH_INGRESS$)/$ENV{option}/m'
change $makefile 's/^(obj-\$\(CONFIG_NET_SCH_PLUG\).*\n)/$1obj-\$(CONFIG_NET_SCH_PSPACER)	+= sch_pspacer.o\n/m'
commit "net/sched: add pspacer, precise packet spacing" <<'END'
Token buckets keep a rate on average: what a class could not send it sends in a
burst later, and the shallow queue of a switch drops it. Add a qdisc that gives
each packet its instant. A class has a clock of picoseconds with a carried
remainder, which a packet moves by its bytes over the rate, so the rate has no
drift. Of the classes whose clock is reached the one with the smallest virtual
finish time goes first (WF2Q+). The rest goes to classes without a rate, by
deficit round robin.

The rates have to fit the line: more is refused. A host that stood still catches
up for a packet of each class and 4 ms, and no more.
END

one=$(part attribute-sets) two=$(part options-msg) three=$(part tca-stats-app-msg) \
	change $specification '
		s/\n*(?=^sub-messages:$)/\n$ENV{one}\n\n/m;
		s/(name: (?:tc-)?options-msg\n    formats:\n(?:(?!\n  -\n).)*?)(?=      -\n        value: qfq\n)/$1$ENV{two}\n/s;
		s/(name: tca-stats-app-msg\n    formats:\n(?:(?!\n\n).)*?)(?=      -\n        value: red\n)/$1$ENV{three}\n/s'
[ ! -f "$tree/$specification" ] || commit "netlink: specs: tc: add pspacer" <<'END'
Add the options and the statistics of the qdisc pspacer.
END

mkdir -p "$tree/$selftests"
cp "$first/sch_pspacer.sh" "$tree/$selftests/sch_pspacer.sh"
chmod +x "$tree/$selftests/sch_pspacer.sh"
change $selftests/Makefile 's/\n(\t(?:s(?:[d-z]|ch_[q-z])|t)\w*\.sh \\)\n/\n\tsch_pspacer.sh \\\n$1\n/ or s/\n(TEST_PROGS \+= )(?=s(?:[d-z]|ch_[q-z])|t)/\n$1sch_pspacer.sh\n$1/'
change $selftests/config 's/^(?=CONFIG_NET_SCH_[Q-Z]|CONFIG_NET_V|\z)/CONFIG_NET_SCH_PSPACER=m\n/m'
commit "selftests: net: test pspacer" <<'END'
Test rates, what is refused and with which words, limits, statistics, and changes
under traffic, also below a qdisc that peeks. pktgen sends through a dummy device.
END

mkdir -p "$tree/$tdc/tc-tests/qdiscs"
cp "$first/pspacer.json" "$tree/$tdc/tc-tests/qdiscs/pspacer.json"
change $tdc/config 's/^(?=CONFIG_NET_SCH_[Q-Z]|\z)/CONFIG_NET_SCH_PSPACER=m\n/m'
commit "selftests: tc-testing: add cases of pspacer" <<'END'
Add cases that make, change, replace and delete the qdisc and its classes.
END

mkdir -p "$tree/Documentation/networking"
cp "$first/pspacer.rst" "$tree/Documentation/networking/pspacer.rst"
change $index 's/^(   psp\n)/$1   pspacer\n/m or s/^(?=   (?:q|r|s)\w)/   pspacer\n/m'
commit "Documentation: networking: describe pspacer" <<'END'
Say what the qdisc is for, what is exact, what it costs and what it counts.
END

sed 1d "$first/cover.txt" >"$work/cover"
rm -f "$out"/*.patch
git -C "$tree" format-patch -q --cover-letter --subject-prefix='RFC PATCH net-next' -o "$out" base
sed -i -e 's/\*\*\* SUBJECT HERE \*\*\*/net\/sched: pspacer, precise packet spacing/' \
	-e '/\*\*\* BLURB HERE \*\*\*/{
		r '"$work/cover"'
		d
	}' "$out"/0000-*.patch

complaints=$work/complaints
for patch in "$out"/0*.patch; do
	case $patch in */0000-*) continue ;; esac
	# New files need an entry of MAINTAINERS, which names people; the kernel's own names of
	# structures have capitals. checkpatch leaves a file in the folder where it runs.
	(cd "$work" && perl "$checkpatch" --no-tree --root="$kernel" --no-summary --terse --show-types --strict \
		--max-line-length=80 --ignore FILE_PATH_CHANGES,CAMELCASE "$patch") || true
done >"$complaints"
cat "$complaints"
ls "$out"/*.patch | wc -l | sed 's/$/ patches/'
[ ! -s "$complaints" ]
