#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes the patch series that brings psp into a kernel tree, out of the committed sources,
# and checks each patch with the checkpatch of that tree. Byte-clock pacing comes first;
# nothing is compiled before the last but one, so each patch leaves a kernel that builds.
#
# usage: series.sh KERNEL OUT
#   KERNEL   a folder with the kernel's sources; it is only read
#   OUT      is made; the patches of an earlier run are replaced
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
for file in net/sched/Kconfig net/sched/Makefile scripts/checkpatch.pl; do
	[ -f "$kernel/$file" ] || die "$kernel: no $file: expected a folder with the kernel's sources"
done
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=$work/sources
tree=$work/tree
mkdir "$sources" "$tree"
git -C "$top" archive HEAD core kernel uapi packaging/upstream | tar -x -f - -C "$sources"

git -C "$tree" init -q
mkdir -p "$tree/net/sched"
cp "$kernel/net/sched/Kconfig" "$kernel/net/sched/Makefile" "$tree/net/sched/"
if [ -f "$kernel/Documentation/netlink/specs/tc.yaml" ]; then
	mkdir -p "$tree/Documentation/netlink/specs"
	cp "$kernel/Documentation/netlink/specs/tc.yaml" "$tree/Documentation/netlink/specs/"
fi
git -C "$tree" add .
git -C "$tree" -c user.name=base -c user.email=base@example.org commit -q -m base
git -C "$tree" tag base
# There psp is a security protocol already, so the qdisc's kind is pspacer.
psp=net/sched/pspacer

# put FILE... FOLDER: copies files of ours into a folder of the kernel, with the kernel's
# names of headers.
put() {
	for folder; do :; done
	mkdir -p "$tree/$folder"
	while [ $# -gt 1 ]; do
		sed -e 's,"\.\./uapi/sch_psp\.h",<uapi/linux/sch_psp.h>,' \
			-e 's,"\.\./uapi/sch_psp_stats\.h","sch_psp_stats.h",' \
			-e 's,"\.\./core/pace\.c","core/pace.c",' \
			-e '/^\t\.id\t/s/"psp"/"pspacer"/' -e '/^MODULE_ALIAS_NET_SCH/s/"psp"/"pspacer"/' \
			"$sources/$1" >"$tree/$folder/$(basename "$1")"
		shift
	done
}
core() {
	for name; do
		put "core/src/$name.c" $psp/core/src
	done
}
# commit SUBJECT <BODY: checkpatch wants lines of at most 75 characters.
commit() {
	git -C "$tree" add .
	{ printf 'net/sched: pspacer: %s\n\n' "$1" && fmt -w 72; } >"$work/message"
	git -C "$tree" commit -q -s -F "$work/message"
}

put core/include/pace/pace.h core/include/pace/pace_sched.h $psp/core/include/pace
put core/deps/mul_div.h $psp/core/deps
put core/deps/kernel/pace_deps.h $psp/core/deps/kernel
core clock
commit "add the clocks" <<'END'
psp paces packets by what was sent: the port's clock is the time that the sent
bytes took on the wire, and a class may send when its own clock is not ahead of
it. No timer is asked when a frame is due, so a late interrupt does not move
frames as long as the transmit ring holds some.

Add the clocks: picoseconds with exact fractions, comparison across a wrap, and
real time on a wire that is idle. The API and its memory come along. Nothing is compiled yet.
END

core heap sort chunk wheel queue storage class key stale
commit "add the queue of class clocks" <<'END'
A port looks up the class with the lowest clock for each frame. Add the queue:
a heap for few classes, and beyond 512 keys a wheel whose cost does not grow
with their number. Classes have packed keys in it, which may be stale.
END

core paced select waiting
commit "add paced classes and the time between frames" <<'END'
Add the classes that have a rate, the choice of the next one, and how the time
until its frame passes: by gap frames, which the next switch port discards, by
a timer, or by a timer and gap frames for the last stretch.
END

core borrow ring best_effort
commit "add borrowing and best effort" <<'END'
Add classes that borrow what others leave, up to a ceiling, and classes
without a rate, which share the rest by deficit round robin. A guard band
keeps them from delaying a paced frame.
END

core launch departure
commit "add launch times" <<'END'
Add classes whose first frame has an instant at which it is to leave. Such a
class waits in a queue of its own, by the host's clock, until the clock of the
port reaches that instant, and is then paced like any other.
END

core steps part join
commit "add classes that several transmit queues share" <<'END'
Add clocks that the schedulers of several transmit queues have in common: a
class has one rate over all of them, and so has the line. A queue takes its
turn at such a clock for some ten microseconds, without a lock of the others.
END

put core/include/pace/pace_group.h $psp/core/include/pace
core rest group
commit "add groups of classes" <<'END'
Add one level above classes: a group has a rate and a ceiling that its classes
share. It is a class of the port and a scheduler of its own.
END

core reservation
commit "add reservations by period" <<'END'
Add classes that reserve bytes of each period, for frames that must arrive in
time. A reservation that does not fit the port is refused.
END

core sched configure
put core/pace.c $psp/core
for file in "$sources"/core/src/*.c; do
	[ -f "$tree/$psp/core/src/$(basename "$file")" ] || die "core/src/$(basename "$file") is in no patch"
done
commit "add the API of the scheduler" <<'END'
Add the calls of the qdisc: activate a class, ask which is next, report what
was sent, and change the configuration, which is checked before it changes.
END

put uapi/sch_psp.h include/uapi/linux
put uapi/sch_psp_stats.h $psp
commit "add the netlink interface" <<'END'
Add attributes and statistics. Statistics are structures to which members are
only appended, and a table that says what each of them means.
END

# shellcheck disable=SC2046 # lists of files
put $(cd "$sources" && ls kernel/compat/*.h) $psp/compat
# shellcheck disable=SC2046
put $(cd "$sources" && ls kernel/*.c kernel/*.h) $psp
commit "add the qdisc" <<'END'
Add the adapter between sk_buff and the scheduler: classification, children,
segments of GSO packets, gap frames, flows of sockets, the rate of the line and
whether its wire is a clock. It is not compiled before the next patch.
END

cat >"$tree/$psp/Makefile" <<'END'
# SPDX-License-Identifier: GPL-2.0-only
#
# sch_psp.c includes the rest of the qdisc and the scheduler.
#

obj-$(CONFIG_NET_SCH_PSPACER) := sch_pspacer.o
sch_pspacer-y := sch_psp.o

ccflags-y += -I$(src)/core/include -I$(src)/core/deps/kernel
ccflags-y += '-DPACE_API=static __maybe_unused'
ccflags-y += '-DPACE_API_PATH=static __always_inline'

# What the headers have: the adapter is compiled for older kernels, too.
psp-has = $(shell grep -qs -w -e '$(2)' $(srctree)/include/$(1) && echo -DPSP_HAVE_$(3))
END
sed -n '/^ccflags-y += \$(call psp-has/p' "$sources/kernel/Kbuild" >>"$tree/$psp/Makefile"
cat >"$work/kconfig" <<'END'
config NET_SCH_PSPACER
	tristate "Precise software pacing (PSPacer)"
	help
	  Say Y here if you want each class of a device to leave it at its own
	  rate, evenly, also while the host is busy. The qdisc fills the time
	  between frames with gap frames, which the next switch port discards,
	  and so needs no timer.

	  To compile this code as a module, choose M here: the module will be
	  called sch_pspacer.

	  If unsure, say N.

END
grep -q '^config NET_SCH_INGRESS$' "$tree/net/sched/Kconfig" || die "$kernel/net/sched/Kconfig has no NET_SCH_INGRESS, before which pspacer goes"
sed -i -e "/^config NET_SCH_INGRESS\$/{
		e cat '$work/kconfig'
	}" "$tree/net/sched/Kconfig"
sed -i 's,^\(obj-$(CONFIG_NET_SCH_PLUG).*\)$,\1\nobj-$(CONFIG_NET_SCH_PSPACER)	+= pspacer/,' "$tree/net/sched/Makefile"
grep -q 'NET_SCH_PSPACER' "$tree/net/sched/Makefile" || die "$kernel/net/sched/Makefile has no NET_SCH_PLUG, after which pspacer goes"
commit "compile the qdisc" <<'END'
Add the qdisc to Kconfig and to the Makefile.
END

sed 1d "$sources/packaging/upstream/cover.txt" >"$work/cover"
rm -f "$out"/*.patch
git -C "$tree" format-patch -q --cover-letter --subject-prefix='RFC PATCH net-next' -o "$out" base
sed -i -e 's/\*\*\* SUBJECT HERE \*\*\*/net\/sched: pspacer, precise software pacing/' \
	-e '/\*\*\* BLURB HERE \*\*\*/{
		r '"$work/cover"'
		d
	}' "$out"/0000-*.patch

complaints=$work/complaints
for patch in "$out"/0*.patch; do
	case $patch in */0000-*) continue ;; esac
	# The folder needs an entry of MAINTAINERS, which names people. checkpatch leaves a
	# file in the folder where it runs.
	cd "$work" && perl "$kernel/scripts/checkpatch.pl" --no-tree --no-summary --terse --show-types \
		--ignore FILE_PATH_CHANGES "$patch" || true
done >"$complaints"
cat "$complaints"
ls "$out"/*.patch | wc -l | sed 's/$/ patches/'
[ ! -s "$complaints" ]
