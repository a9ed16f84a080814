#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What the scripts of this folder share: packages in a temporary folder, a guest with a kernel of Debian,
# and comparing what is seen with what was noted. Nothing of the project runs in them.
#
# A script sources this, says what one would guess and what it is, and notes what it sees:
#   . "$(dirname "$0")/lib.sh"
#   finding 'what one would guess' 'what it is'
#   ...
#   seen 'what was looked at' "$found" "$expected"
#
# exit status: 0 all is as noted; 1 something is not; 2 it could not run here; 3 a pinned package is gone.
# PSPACER_FINDINGS_CACHE names a folder that keeps downloads from one script to the next.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/finding.XXXXXX")
cache=${PSPACER_FINDINGS_CACHE:-$work/cache}
background=
# keep_running PID: it is ended with the script.
keep_running() { background="$background $1"; }
at_end() {
	status=$?
	trap - EXIT
	# shellcheck disable=SC2086
	[ -z "$background" ] || kill $background 2>/dev/null || :
	for mounted in "$work"/*/proc; do
		[ ! -e "$mounted/self" ] || umount "$mounted"
	done
	rm -rf "$work"
	exit "$status"
}
trap at_end EXIT
trap 'exit 2' INT TERM

cannot() {
	echo "$(basename "$0"): $*" >&2
	exit 2
}
[ "$(id -u)" = 0 ] || cannot "it has to be root: it unpacks packages and makes namespaces"

is_as_noted=1
# finding GUESS IS: what is found out here.
finding() {
	printf 'guess: %s\nis:    %s\n' "$1" "$2"
}
# seen WHAT FOUND EXPECTED: a value that has to be as noted. Each of * and ? in EXPECTED stands for text.
seen() {
	# shellcheck disable=SC2254
	case $2 in
	$3) printf 'seen:  %s: %s\n' "$1" "$2" ;;
	*)
		printf 'CHANGED: %s: %s, noted was %s\n' "$1" "$2" "$3"
		is_as_noted=0
		;;
	esac
}
# seen_within WHAT FOUND LEAST MOST: a number that has to be in a range.
seen_within() {
	if awk -v n="$2" -v least="$3" -v most="$4" 'BEGIN { exit !(n != "" && n + 0 >= least && n + 0 <= most) }'; then
		printf 'seen:  %s: %s (%s to %s)\n' "$1" "$2" "$3" "$4"
	else
		printf 'CHANGED: %s: %s, noted was %s to %s\n' "$1" "$2" "$3" "$4"
		is_as_noted=0
	fi
}
# done_: the script's last line.
done_() {
	[ "$is_as_noted" = 1 ] || exit 1
}

# of_debian SUITE[,SUITE...]: the options of apt that know only these suites, and nothing of this machine's packages.
of_debian() {
	apt=$cache/apt-$1
	if [ ! -d "$apt/lists" ]; then
		mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/none/partial"
		: >"$apt/status"
		# shellcheck disable=SC2046
		sh "$here/../tools/archive.sh" $(echo "$1" | tr , ' ') >"$apt/suite.sources" || cannot "there is no archive of Debian"
	fi
	options="-qq -o Dir::State=$apt -o Dir::State::lists=$apt/lists -o Dir::State::status=$apt/status \
-o Dir::Cache=$apt -o Dir::Cache::archives=$apt/archives -o Dir::Etc::sourcelist=$apt/suite.sources \
-o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null -o APT::Install-Recommends=false \
-o APT::Sandbox::User=root -o Debug::NoLocking=true"
	# shellcheck disable=SC2086
	[ -e "$apt/updated" ] || apt-get $options update || cannot "apt cannot update"
	: >"$apt/updated"
}
# packages ROOT SUITE NAME[=VERSION]...: unpacks packages of Debian, with all that they need, into a folder.
packages() {
	root=$1
	of_debian "$2"
	shift 2
	# As the package base-files has it.
	for dir in bin sbin lib lib64; do
		mkdir -p "$root/usr/$dir"
		[ -e "$root/$dir" ] || ln -s "usr/$dir" "$root/$dir"
	done
	# shellcheck disable=SC2086
	files=$(apt-get $options -o Dir::Cache::archives="$apt/none" --yes --print-uris install "$@") || {
		echo "$(basename "$0"): the archive does not have all of: $*" >&2
		exit 3
	}
	# shellcheck disable=SC2086
	apt-get $options --yes --download-only install "$@" >/dev/null || cannot "apt cannot download"
	echo "$files" | awk '{ print $2 }' | while read -r file; do
		# dpkg -x would exchange the links for folders.
		dpkg --fsys-tarfile "$apt/archives/$file" | tar -x --keep-directory-symlink -C "$root"
	done
	# What a package's script would have made.
	[ ! -e "$root/bin/dash" ] || ln -sf dash "$root/bin/sh"
	[ ! -x "$root/sbin/ldconfig" ] && [ ! -x "$root/usr/sbin/ldconfig" ] || chroot "$root" /sbin/ldconfig
	for name in "$@"; do
		name=${name%%=*}
		echo "$files" | awk -v name="$name" '{
			split($2, part, "_")
			if (part[1] == name) { gsub(/%3a/, ":", part[2]); print "with:  " name " " part[2] }
		}'
	done
}
# devices ROOT: the two that most programs open.
devices() {
	mkdir -p "$1/dev"
	[ -c "$1/dev/null" ] || mknod -m 666 "$1/dev/null" c 1 3
	[ -c "$1/dev/urandom" ] || mknod -m 666 "$1/dev/urandom" c 1 9
}
# user ROOT NAME ID: a user of the packages there, as their programs look for one, with a group of that name.
user() {
	mkdir -p "$1/etc"
	! grep -qs "^$2:" "$1/etc/passwd" || return 0
	echo "$2:x:$3:$3::/tmp:/bin/sh" >>"$1/etc/passwd"
	echo "$2:x:$3:" >>"$1/etc/group"
}
# inside ROOT COMMAND...: a command of the packages that were unpacked there.
inside() {
	root=$1
	shift
	[ -e "$root/proc/self" ] || { mkdir -p "$root/proc" && mount -t proc proc "$root/proc"; }
	devices "$root"
	mkdir -p "$root/tmp"
	LC_ALL=C.UTF-8 chroot "$root" "$@"
}

# python NAME==VERSION...: a virtual environment with packages of PyPI; $python runs in it.
python() {
	python3 -m venv "$work/venv" || cannot "python3 has no venv"
	"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$@" || {
		echo "$(basename "$0"): PyPI does not have all of: $*" >&2
		exit 3
	}
	# shellcheck disable=SC2034
	python=$work/venv/bin/python
	for name in "$@"; do
		echo "with:  $name"
	done
}

# go_program DIR: builds the program of Go in a folder that has a go.mod and a go.sum; $work/DIR/run is it.
go_program() {
	command -v go >/dev/null || cannot "there is no go"
	(cd "$1" && GOFLAGS=-mod=mod GOPATH="$cache/go" GOCACHE="$cache/go-build" go build -o run .) ||
		cannot "go cannot build it"
}

# machine: unpacks QEMU.
machine() {
	[ -x "$cache/qemu/usr/bin/qemu-system-x86_64" ] ||
		packages "$cache/qemu" trixie qemu-system-x86 seabios ipxe-qemu
}
# qemu OPTION...: QEMU of trixie.
qemu() {
	inside "$cache/qemu" /usr/bin/qemu-system-x86_64 "$@"
}
# guest_root ROOT SUITE KERNEL[=VERSION] MODULES [PACKAGE...]: what a guest needs: a kernel's package, these of
# its modules with those that they need, and packages; a small set of tools is always there.
guest_root() {
	guest=$1 kernel=$3 modules=$4
	suite=$2
	shift 4
	packages "$guest" "$suite" busybox-static dash iproute2 kmod liblzma5 libzstd1 "$@"
	rm -rf "$work/kernel"
	# Its dependencies make a ramdisk, which nobody needs here.
	mkdir -p "$work/kernel"
	# shellcheck disable=SC2086
	(cd "$work/kernel" && apt-get $options download "$kernel") || {
		echo "$(basename "$0"): the archive does not have $kernel" >&2
		exit 3
	}
	echo "with:  $kernel"
	mkdir -p "$guest/kernel/usr/lib"
	ln -s usr/lib "$guest/kernel/lib"
	dpkg -x "$work"/kernel/*.deb "$guest/kernel"
	# Since 7.x the package of an image only needs those of its file and its modules.
	if [ ! -e "$guest/kernel/boot" ]; then
		rest=${kernel#linux-image-}
		# shellcheck disable=SC2086
		(cd "$work/kernel" &&
			apt-get $options download "linux-base-$rest" "linux-binary-$rest" "linux-modules-$rest") || {
			echo "$(basename "$0"): the archive does not have the parts of $kernel" >&2
			exit 3
		}
		for part in base binary modules; do
			dpkg -x "$work"/kernel/linux-$part-*.deb "$guest/kernel"
		done
		mkdir -p "$guest/kernel/boot"
		mv "$guest"/kernel/lib/modules/*/vmlinuz "$guest/kernel/boot/vmlinuz-$rest"
	fi
	release=$(basename "$guest"/kernel/lib/modules/*)
	cp "$guest"/kernel/boot/vmlinuz-* "$work/vmlinuz"
	inside "$guest" depmod -b /kernel "$release"
	tree=kernel/lib/modules/$release
	mkdir -p "$guest/lib/modules/$release"
	(cd "$guest/$tree" && cp modules.builtin* modules.order "$guest/lib/modules/$release/")
	for module in $modules; do
		inside "$guest" modprobe -d /kernel -S "$release" --show-depends "$module" |
			sed -n "s,^insmod .*/lib/modules/$release/\\([^ ]*\\).*,\\1,p"
	done | sort -u | while read -r file; do
		mkdir -p "$guest/lib/modules/$release/$(dirname "$file")"
		cp "$guest/$tree/$file" "$guest/lib/modules/$release/$file"
	done
	rm -rf "$guest/kernel"
	inside "$guest" depmod "$release"
}
# guest ROOT SCRIPT [OPTION...]: boots it, with more options of QEMU, runs a script of sh in it, and prints what
# that prints. The log of its console is in $work/console.
guest() {
	machine >&2
	root=$1
	cp "$2" "$root/script"
	shift 2
	cat >"$root/init" <<-'EOF'
		#!/usr/bin/busybox sh
		/usr/bin/busybox --install -s /bin 2>/dev/null
		export PATH=/usr/sbin:/usr/bin:/sbin:/bin
		mkdir -p /proc /sys /dev /tmp /run
		mount -t proc proc /proc
		mount -t sysfs sys /sys
		mount -t devtmpfs dev /dev 2>/dev/null
		mount -t bpf bpf /sys/fs/bpf 2>/dev/null
		ip link set lo up
		/usr/bin/dash /script >/dev/ttyS1 2>&1
		echo "=end $?" >/dev/ttyS1
		sync
		poweroff -f
	EOF
	chmod +x "$root/init"
	! mountpoint -q "$root/proc" || umount "$root/proc"
	(cd "$root" && find . -path ./usr/share -prune -o -print0 |
		"$root/usr/bin/busybox" cpio -0 -o -H newc 2>/dev/null) | gzip -1 >"$work/initrd"
	# QEMU sees its own folder alone.
	own=tmp/$(basename "$work")
	mkdir -p "$cache/qemu/$own"
	mv "$work/initrd" "$cache/qemu/$own/"
	cp "$work/vmlinuz" "$cache/qemu/$own/"
	timeout 170 chroot "$cache/qemu" /usr/bin/qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 1024 \
		-smp 1 -display none -nic none -no-reboot -kernel "/$own/vmlinuz" -initrd "/$own/initrd" \
		-append 'console=ttyS0 panic=-1' -serial "file:/$own/console" -serial "file:/$own/out" "$@" >&2 ||
		cannot "the guest did not end"
	mv "$cache/qemu/$own/console" "$cache/qemu/$own/out" "$work/"
	rm -rf "${cache:?}/qemu/$own"
	grep -q '^=end 0' "$work/out" || {
		tail -n 30 "$work/out" "$work/console" >&2
		cannot "the guest's script did not end well"
	}
	sed '/^=end /d; s/\r$//' "$work/out"
}
# veth_pair: what a guest's script begins with, to have va (10.0.0.1) here and vb (10.0.0.2) in the namespace n,
# and nothing on the way but what the script sends.
veth_pair() {
	cat <<-'EOF'
		say() { tr '\t\n' '  ' | tr -s ' ' | sed "s/^ *//; s/^/$1 /; s/ *\$//"; echo; }
		stat() { cat "/sys/class/net/va/statistics/$1"; }
		neighbours() {
			ip neigh replace 10.0.0.2 dev va lladdr "$(ip netns exec n cat /sys/class/net/vb/address)" nud permanent
			ip -n n neigh replace 10.0.0.1 dev vb lladdr "$(cat /sys/class/net/va/address)" nud permanent
		}
		ip netns add n
		echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
		ip netns exec n sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
		ip link add va type veth peer name vb netns n
		ip addr add 10.0.0.1/24 dev va
		ip -n n addr add 10.0.0.2/24 dev vb
		ip -n n link set vb up
		ip link set va up
		neighbours
		echo "kernel $(uname -r)"
		echo "tc $(tc -V)"
	EOF
}
# system ROOT: what packages need there whose programs talk over the system's bus.
system() {
	devices "$1"
	user "$1" root 0
	user "$1" messagebus 100
	echo 0123456789abcdef0123456789abcdef >"$1/etc/machine-id"
}
# on_system ROOT: runs the script of standard input beside a bus of those packages, with a pair va and vb that is up,
# in namespaces of its own. In it $R is the root, and "say NAME" says the root qdisc of va.
on_system() {
	{
		cat <<-'EOF'
			R=$1
			ip link add va type veth peer name vb
			ip link set va up
			ip link set vb up
			mkdir -p "$R/proc" "$R/sys" "$R/run"
			mount -t proc proc "$R/proc"
			# Without a udev that would have to say that a device is ready.
			mount -t sysfs -o ro sys "$R/sys"
			mount -t tmpfs run "$R/run"
			mkdir -p "$R/run/dbus"
			chroot "$R" dbus-daemon --system --nofork --nopidfile >/dev/null 2>&1 &
			sleep 1
			say() { echo "$1 $(tc qdisc show dev va | sed 's/ refcnt [0-9]*//; s/^qdisc //')"; }
		EOF
		cat
	} >"$work/script"
	timeout 100 unshare -n -m -p -f --kill-child --mount-proc sh "$work/script" "$1" >"$work/said" 2>/dev/null || :
}
# said NAME: what the script said after this name.
said() { sed -n "s/^$1 //p" "$work/said"; }
