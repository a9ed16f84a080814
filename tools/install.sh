#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs psp on this host, or removes it: the kernel module through DKMS, the tc
# plugin, the command with all that it needs, and the manual pages. The script checks
# everything before it changes anything, and a failure removes what was installed.
# install-command installs the command alone, for hosts without the module, and install-reserve
# the library of reservations with what programs in C are compiled with; they need no root where
# PREFIX is the user's own.
#
# usage: install.sh install|uninstall|install-command|uninstall-command|install-reserve|uninstall-reserve
#   PREFIX  where the command, its unit of systemd and manual pages go (/usr/local)
#   DESTDIR a folder that stands for / while PREFIX is written to, for packages: not with
#           install and uninstall
#   PSPACER the command that was built (CARGO_TARGET_DIR/release/pspacer); pspacer-cni and
#           pspacer-node are installed, too, if they lie beside it
#   RESERVE the folder of the library that was built (CARGO_TARGET_DIR/release)
#   KVER    the kernel to build for (the running one)
#   CARGO_TARGET_DIR  where the command was built (target)
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$top/kernel/dkms.conf")
# An absolute path, because files are copied from several folders. A relative PREFIX is
# below the working folder.
prefix=$(realpath -m -- "${PREFIX:-/usr/local}")
kver=${KVER:-$(uname -r)}
binary=${PSPACER:-${CARGO_TARGET_DIR:-$top/target}/release/pspacer}
reserve=${RESERVE:-${CARGO_TARGET_DIR:-$top/target}/release}
# Where files are written, and where they are once DESTDIR is unpacked.
dest=${DESTDIR:+$(realpath -m -- "$DESTDIR")}$prefix
share=$dest/share/pspacer
units=lib/systemd/system
unit_names="pspacer@.service pspacer-follow.service pspacer-agent.service pspacer-manager.service"
# The command reads these folders: scenarios, and the sources and scripts of a guest.
read_folders="LICENSES core experiments kernel lab tc uapi"

die() {
	echo "install: $*" >&2
	exit 1
}

# tc_dir: prints the folder in which this machine's tc looks for plugins.
tc_dir() {
	for d in /usr/lib/"$(uname -m)"-linux-gnu/tc /usr/lib64/tc /usr/lib/tc; do
		[ -d "$d" ] && echo "$d" && return
	done
	die "no tc plugin directory (looked for /usr/lib/*/tc): is iproute2 installed? Nothing was changed."
}

check_command() {
	[ -x "$binary" ] || die "the command is not built ($binary): run 'make build' first. Nothing was changed."
}

check_install() {
	[ -z "${DESTDIR:-}" ] || die "DESTDIR is for install-command: DKMS builds the module on the machine itself. Nothing was changed."
	[ "$(id -u)" = 0 ] || die "needs root: it puts a module under /lib/modules and files under $prefix. Nothing was changed."
	[ "$kver" != "$(uname -r)" ] || [ -e /proc/modules ] ||
		die "the running kernel ($kver) was built without loadable modules: psp cannot be installed here. Nothing was changed. (The laboratory, 'make demo', needs no module on the host.)"
	[ -e "/lib/modules/$kver/build/Makefile" ] ||
		die "no headers for kernel $kver (/lib/modules/$kver/build): install linux-headers for it first. Nothing was changed."
	command -v dkms >/dev/null || die "dkms is missing: install the package 'dkms'. Nothing was changed."
	check_command
	[ -e "$top/tc/q_psp.so" ] || die "the tc plugin is not built: run 'make build' first. Nothing was changed."
	plugin=$(tc_dir)/q_psp.so
}

# The file from which each shell completes this command.
completions='bash share/bash-completion/completions/pspacer
zsh share/zsh/site-functions/_pspacer
fish share/fish/vendor_completions.d/pspacer.fish'

remove_command() {
	rm -rf "$share"
	rm -f "$dest/bin/pspacer" "$dest/share/man/man1/pspacer.1" \
		"$dest/share/man/man8/tc-psp.8" "$dest/share/man/man8/pspacer-cni.8" \
		"$dest/share/man/man8/pspacer-node.8" "$dest/lib/cni/pspacer-cni" "$dest/lib/pspacer/pspacer-node"
	[ ! -d "$dest/lib/pspacer" ] || rmdir --ignore-fail-on-non-empty "$dest/lib/pspacer"
	for unit in $unit_names; do rm -f "$dest/$units/$unit"; done
	echo "$completions" | while read -r _ file; do rm -f "$dest/$file"; done
}

install_command() {
	install -D -m 755 "$binary" "$dest/bin/pspacer"
	cni=$(dirname "$binary")/pspacer-cni
	if [ -e "$cni" ]; then
		install -D -m 755 "$cni" "$dest/lib/cni/pspacer-cni"
		install -D -m 644 "$top/docs/man/pspacer-cni.8" "$dest/share/man/man8/pspacer-cni.8"
	fi
	node=$(dirname "$binary")/pspacer-node
	if [ -e "$node" ]; then
		install -D -m 755 "$node" "$dest/lib/pspacer/pspacer-node"
		install -D -m 644 "$top/docs/man/pspacer-node.8" "$dest/share/man/man8/pspacer-node.8"
	fi
	install -D -m 644 "$top/docs/man/pspacer.1" "$dest/share/man/man1/pspacer.1"
	install -D -m 644 "$top/docs/man/tc-psp.8" "$dest/share/man/man8/tc-psp.8"
	install -d "$dest/$units"
	for unit in $unit_names; do
		sed "s|/usr/bin/pspacer|$prefix/bin/pspacer|" "$top/packaging/systemd/$unit" >"$dest/$units/$unit"
		chmod 644 "$dest/$units/$unit"
	done
	rm -rf "$share"
	install -d "$share"
	# shellcheck disable=SC2086 # several folders; built files are left out
	(cd "$top" && find $read_folders -type f \( -name '*.[chS]' -o -name '*.sh' -o -name '*.mk' \
		-o -name 'Kbuild*' -o -name 'Makefile*' -o -name '*.toml' -o -name '*.json' \
		-o -name '*.config' -o -name '*.conf' -o -name '*.md' -o -name '*.txt' \
		-o -name .gitignore \) ! -name '*.mod.c' \
		-exec cp --parents --preserve=mode -t "$share" {} +)
	install -D -m 644 "$top/crates/stalls/stall/lua/pspacer.lua" "$share/wireshark/pspacer.lua"
	chmod -R a+rX,go-w "$share"
	echo "$completions" | while read -r shell file; do
		install -d "$(dirname "$dest/$file")"
		"$dest/bin/pspacer" completions "$shell" >"$dest/$file"
		chmod 644 "$dest/$file"
	done
}

remove_reserve() {
	rm -f "$dest/lib/libpsp_reserve.so" "$dest/lib/libpsp_reserve.so.0" "$dest/lib/libpsp_reserve.a" \
		"$dest/lib/pkgconfig/psp_reserve.pc" "$dest/include/psp_reserve.h"
}

install_reserve() {
	for file in libpsp_reserve.so libpsp_reserve.a; do
		[ -e "$reserve/$file" ] ||
			die "$reserve/$file is not built: run 'cargo build --release -p psp-reserve' first. Nothing was changed."
	done
	# A program loads the library by the version of its interface, and is linked by the plain name.
	install -D -m 644 "$reserve/libpsp_reserve.so" "$dest/lib/libpsp_reserve.so.0"
	ln -sf libpsp_reserve.so.0 "$dest/lib/libpsp_reserve.so"
	install -m 644 "$reserve/libpsp_reserve.a" "$dest/lib/libpsp_reserve.a"
	install -D -m 644 -t "$dest/include" "$top/crates/streams/psp-reserve/include/psp_reserve.h"
	install -d "$dest/lib/pkgconfig"
	sed -e "s,@prefix@,$prefix,; s,@libdir@,$prefix/lib,; s,@version@,$("$top/packaging/version.sh")," \
		"$top/crates/streams/psp-reserve/psp_reserve.pc.in" >"$dest/lib/pkgconfig/psp_reserve.pc"
	chmod 644 "$dest/lib/pkgconfig/psp_reserve.pc"
}

# installed_sources: lists the module's sources of this version and of earlier ones.
installed_sources() {
	ls -d /usr/src/sch_psp-* 2>/dev/null || true
}

remove_all() {
	for folder in $(installed_sources); do
		if command -v dkms >/dev/null; then
			dkms remove "sch_psp/${folder#/usr/src/sch_psp-}" --all >/dev/null 2>&1 || true
		fi
		rm -rf "$folder"
	done
	rm -f "$(tc_dir)/q_psp.so"
	remove_command
}

install_all() {
	check_install
	[ -z "$(installed_sources)" ] || remove_all
	trap 'status=$?; [ $status = 0 ] || { remove_all; echo "install: failed; everything was taken back" >&2; }; exit $status' EXIT
	make --no-print-directory -C "$top/kernel" dkms-source >/dev/null
	dkms add "sch_psp/$version" >/dev/null
	if ! dkms build "sch_psp/$version" -k "$kver"; then
		log=/var/lib/dkms/sch_psp/$version/build/make.log
		[ ! -e "$log" ] || tail -n 20 "$log" >&2
		exit 1
	fi
	dkms install "sch_psp/$version" -k "$kver"
	install -D -m 644 "$top/tc/q_psp.so" "$plugin"
	install_command
	echo "installed: module sch_psp for $kver (DKMS sch_psp/$version), $plugin, $prefix/bin/pspacer, pspacer@.service, pspacer-follow.service, pspacer-agent.service, pspacer-manager.service, pspacer(1), tc-psp(8)"
	echo "try: modprobe sch_psp; man tc-psp"
}

case ${1:-} in
install) install_all ;;
uninstall)
	[ "$(id -u)" = 0 ] || die "needs root. Nothing was changed."
	if grep -q '^sch_psp ' /proc/modules 2>/dev/null && ! rmmod sch_psp 2>/dev/null; then
		die "the module is in use: delete the psp qdiscs first ('tc qdisc show | grep psp'). Nothing was changed."
	fi
	remove_all
	echo "uninstalled: psp $version"
	;;
install-command)
	check_command
	install_command
	echo "installed: $dest/bin/pspacer, $dest/$units, pspacer(1), what it reads in $share, completions for bash, zsh and fish"
	;;
uninstall-command)
	remove_command
	echo "uninstalled: $dest/bin/pspacer"
	;;
install-reserve)
	install_reserve
	echo "installed: $dest/lib/libpsp_reserve.so, libpsp_reserve.a, psp_reserve.h, psp_reserve.pc"
	;;
uninstall-reserve)
	remove_reserve
	echo "uninstalled: $dest/lib/libpsp_reserve.so"
	;;
*)
	echo "usage: $0 install|uninstall|install-command|uninstall-command|install-reserve|uninstall-reserve" >&2
	exit 2
	;;
esac
