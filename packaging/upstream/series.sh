#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes a patch series for a kernel's tree out of the committed sources: the qdisc pspacer,
# whose scheduler take.pl takes from core/ by the names of its functions, or what a later series
# adds to it. Checks each patch with that tree's checkpatch. docs/contribute/upstream.md says
# what is in each.
#
# usage: series.sh KERNEL OUT [SERIES]
#   KERNEL      a folder with the kernel's sources, without pspacer; it is only read. Of the files
#               that patches change, those of the specification, of selftests and of documents
#               may be absent: their entries are left out, and that is said
#   OUT         is made; the patches of an earlier run are replaced
#   SERIES      first (if it is left out), ceil, launch or gap: each on top of the one before
#   CHECKPATCH  another checkpatch.pl than KERNEL's
#
# The patches are signed off by git's user (user.name, user.email).
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
die() {
	echo "series.sh: $*" >&2
	exit 1
}
[ $# = 2 ] || [ $# = 3 ] || {
	echo "usage: $0 KERNEL OUT [SERIES]" >&2
	exit 2
}
all="first ceil launch gap"
wanted=${3-first}
case " $all " in
*" $wanted "*) ;;
*) die "$wanted: no series: expected one of $all" ;;
esac
[ -d "$1" ] || die "$1: no folder"
kernel=$(cd "$1" && pwd)
checkpatch=${CHECKPATCH:-$kernel/scripts/checkpatch.pl}
kconfig=net/sched/Kconfig
makefile=net/sched/Makefile
uapi=include/uapi/linux/pkt_sched.h
for file in $kconfig $makefile $uapi; do
	[ -f "$kernel/$file" ] || die "$kernel: no $file: expected a folder with the kernel's sources"
done
[ ! -f "$kernel/net/sched/sch_pspacer.c" ] || die "$kernel: has net/sched/sch_pspacer.c: expected a kernel without"
[ -f "$checkpatch" ] || die "$checkpatch: no such file: expected the kernel's checkpatch.pl"
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=$work/sources
tree=$work/tree
ours=$sources/packaging/upstream/pspacer
mkdir "$sources" "$tree"
git -C "$top" archive HEAD core packaging/upstream/pspacer | tar -x -f - -C "$sources"

specification=Documentation/netlink/specs/tc.yaml
selftests=tools/testing/selftests/net
tdc=tools/testing/selftests/tc-testing
documents=Documentation/networking
index=$documents/index.rst
git -C "$tree" init -q
for file in $kconfig $makefile $uapi $specification $selftests/Makefile $selftests/config \
	$selftests/.gitignore $tdc/config $index; do
	[ -f "$kernel/$file" ] || continue
	mkdir -p "$tree/$(dirname "$file")"
	cp "$kernel/$file" "$tree/$file"
done
git -C "$tree" add .
git -C "$tree" -c user.name=base -c user.email=base@example.org commit -q -m base

# text SERIES FILE: one of our files as a series has it.
text() {
	perl "$ours/upto.pl" "$1" <"$ours/$2"
}

# message SERIES PATCH: its subject, an empty line, its body.
message() {
	perl -ne 'if (s/^\@(\w+) (?=.)//) { $in = $1 eq "'"$2"'"; $_ .= "\n" } print if $in' "$ours/$1.txt"
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

# replace FILE OLD NEW: changes what an earlier series put there.
replace() {
	old=$2 new=$3 change "$1" 's/\Q$ENV{old}\E/$ENV{new}/'
}

header() {
	text "$1" pkt_sched_pspacer.h | sed 1d
}

# part SERIES KEY: what tc.yaml of ours has below a key.
part() {
	text "$1" tc.yaml | sed -n "/^$2:\$/,/^[a-z]/{/^[a-z]/!p}"
}

# new SERIES FROM TO: a file of ours, in its whole.
new() {
	mkdir -p "$tree/$(dirname "$3")"
	text "$1" "$2" >"$tree/$3"
}

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

# first_entries PATCH: what the first series has beside its own files.
first_entries() {
	case $1 in
	uapi)
		attributes=$(header first) change $uapi 's/\n#endif\s*\z/$ENV{attributes}\n\n#endif\n/'
		;;
	qdisc)
		option=$option change $kconfig 's/(?=^config NET_SCH_INGRESS$)/$ENV{option}/m'
		change $makefile 's/^(obj-\$\(CONFIG_NET_SCH_PLUG\).*\n)/$1obj-\$(CONFIG_NET_SCH_PSPACER)	+= sch_pspacer.o\n/m'
		;;
	specs)
		one=$(part first attribute-sets) two=$(part first options-msg) \
			three=$(part first tca-stats-app-msg) change $specification '
				s/\n*(?=^sub-messages:$)/\n$ENV{one}\n\n/m;
				s/(name: (?:tc-)?options-msg\n    formats:\n(?:(?!\n  -\n).)*?)(?=      -\n        value: qfq\n)/$1$ENV{two}\n/s;
				s/(name: tca-stats-app-msg\n    formats:\n(?:(?!\n\n).)*?)(?=      -\n        value: red\n)/$1$ENV{three}\n/s'
		;;
	selftest)
		change $selftests/Makefile 's/\n(\t(?:s(?:[d-z]|ch_[q-z])|t)\w*\.sh \\)\n/\n\tsch_pspacer.sh \\\n$1\n/ or s/\n(TEST_PROGS \+= )(?=s(?:[d-z]|ch_[q-z])|t)/\n$1sch_pspacer.sh\n$1/'
		change $selftests/config 's/^(?=CONFIG_NET_SCH_[Q-Z]|CONFIG_NET_V|\z)/CONFIG_NET_SCH_PSPACER=m\n/m'
		;;
	tdc) change $tdc/config 's/^(?=CONFIG_NET_SCH_[Q-Z]|\z)/CONFIG_NET_SCH_PSPACER=m\n/m' ;;
	document)
		change $index 's/^(   psp\n)/$1   pspacer\n/m or s/^(?=   (?:q|r|s)\w)/   pspacer\n/m'
		;;
	esac
}

# later_entries SERIES BEFORE PATCH: what changes in files that are not ours.
later_entries() {
	case $3 in
	uapi) replace $uapi "$(header "$2")" "$(header "$1")" ;;
	specs) replace $specification "$(part "$2" attribute-sets)" "$(part "$1" attribute-sets)" ;;
	selftest)
		# It sends packets with launch times.
		[ "$1" = launch ] || return 0
		change $selftests/Makefile 's/\n(TEST_GEN_FILES := \\\n(?:\t[a-r]\w* \\\n)*)/\n$1\tsch_pspacer_txtime \\\n/ or s/\n(?=TEST_GEN_FILES \+= )/\nTEST_GEN_FILES += sch_pspacer_txtime\n/'
		change $selftests/.gitignore 's/^(?=s(?:[d-z]|ctp)\w*\n)/sch_pspacer_txtime\n/m or s/\z/sch_pspacer_txtime\n/'
		;;
	esac
}

# own_files SERIES PATCH
own_files() {
	case $2 in
	qdisc)
		text "$1" sch_pspacer.c.in >"$work/template"
		perl "$ours/take.pl" "$sources/core" <"$work/template" >"$tree/net/sched/sch_pspacer.c"
		;;
	selftest)
		new "$1" sch_pspacer.sh $selftests/sch_pspacer.sh
		chmod +x "$tree/$selftests/sch_pspacer.sh"
		case $1 in
		first | ceil) ;;
		*) new "$1" sch_pspacer_txtime.c $selftests/sch_pspacer_txtime.c ;;
		esac
		;;
	tdc) new "$1" pspacer.json $tdc/tc-tests/qdiscs/pspacer.json ;;
	document) new "$1" pspacer.rst $documents/pspacer.rst ;;
	esac
}

before=
for series in $all; do
	git -C "$tree" tag "before-$series"
	for patch in uapi qdisc specs selftest tdc document; do
		mkdir -p "$tree/net/sched"
		own_files "$series" $patch
		if [ "$series" = first ]; then
			first_entries $patch
		else
			later_entries "$series" "$before" $patch
		fi
		git -C "$tree" add .
		! git -C "$tree" diff --cached --quiet || continue
		# checkpatch wants lines of at most 75 characters.
		message "$series" $patch >"$work/text"
		{ sed 2q "$work/text" && sed 1,2d "$work/text" | fmt -w 72; } >"$work/message"
		git -C "$tree" commit -q -s -F "$work/message"
	done
	[ "$series" != "$wanted" ] || break
	before=$series
done

message "$wanted" cover >"$work/text"
sed 1,2d "$work/text" >"$work/cover"
rm -f "$out"/*.patch
git -C "$tree" format-patch -q --cover-letter --subject-prefix='RFC PATCH net-next' -o "$out" "before-$wanted"
sed -i -e "s|\*\*\* SUBJECT HERE \*\*\*|$(head -n 1 "$work/text")|" \
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
