#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Puts what packaging/build.sh compiled into the folder of a package, with /usr as prefix.
# debian/rules and pspacer.spec share it, so that both have the same files.
#
# usage: install.sh command FOLDER          the command, its files, units, examples
#        install.sh plugin FOLDER TC_DIR    the tc plugin, in TC_DIR
#        install.sh library FOLDER LIB_DIR  the core: archive in LIB_DIR, headers, pace.pc
#        install.sh reserve FOLDER LIB_DIR      libpsp_reserve, in LIB_DIR
#        install.sh reserve-dev FOLDER LIB_DIR  what programs that use it are compiled with
#        install.sh module FOLDER           the module's sources for DKMS
#   PACKAGED          where build.sh left its files (build/packaged)
set -eu

cd "$(dirname "$0")/.."
top=$(pwd)
out=${PACKAGED:-$top/build/packaged}
usage() {
	sed -n '/^# usage:/,/^#   PACKAGED/s/^# //p' "$0" >&2
	exit 2
}
umask 022

install_command() {
	PREFIX=$root/usr PSPACER=$out/pspacer tools/install.sh install-command >/dev/null
	# The tc plugin's package has this page.
	rm "$root/usr/share/man/man8/tc-psp.8"
	doc=$root/usr/share/doc/pspacer
	install -D -m 644 -t "$root/usr/lib/systemd/system" packaging/systemd/*.service
	install -D -m 644 -t "$doc/examples/grafana" packaging/grafana/*.json
	install -D -m 644 -t "$doc/examples/prometheus" packaging/prometheus/*.yml
	install -D -m 644 -t "$doc/examples/kubernetes" packaging/kubernetes/*.yaml
	install -D -m 644 -t "$doc" SECURITY.md "$out/pspacer.cdx.json" "$out/third-party"
	# Documents lie beside README there.
	sed -e 's,](docs/README.md,](documents.md,' -e 's,](docs/,](,g' README.md >"$doc/README.md"
	install -m 644 docs/README.md "$doc/documents.md"
	for part in use understand contribute; do
		install -D -m 644 -t "$doc/$part" "docs/$part"/*.*
	done
	install -D -m 644 packaging/apparmor/pspacer "$root/etc/apparmor.d/pspacer"
	install -d "$root/etc/pspacer"
}

# install_library LIB_DIR
install_library() {
	include=$root/usr/include/pace
	install -D -m 644 "$out/libpace.a" "$root$1/libpace.a"
	install -D -m 644 -t "$include" core/include/pace/*.h core/deps/mul_div.h
	# All headers are in one folder there.
	sed 's,"\.\./mul_div\.h","mul_div.h",' core/deps/host/pace_deps.h >"$include/pace_deps.h"
	install -d "$root$1/pkgconfig"
	cat >"$root$1/pkgconfig/pace.pc" <<-END
		libdir=$1
		Name: pace
		Description: packet scheduler of one port, on a clock of what was sent
		Version: $(packaging/version.sh)
		Libs: -L\${libdir} -lpace
	END
}

# install_reserve LIB_DIR
install_reserve() {
	install -D -m 644 "$out/libpsp_reserve.so.0" "$root$1/libpsp_reserve.so.0"
	install -D -m 644 -t "$root/usr/share/doc/libpsp-reserve0" "$out/third-party"
}

# install_reserve_dev LIB_DIR
install_reserve_dev() {
	install -D -m 644 -t "$root/usr/include" crates/streams/psp-reserve/include/psp_reserve.h
	install -d "$root$1/pkgconfig"
	ln -sf libpsp_reserve.so.0 "$root$1/libpsp_reserve.so"
	sed -e "s,@prefix@,/usr,; s,@libdir@,$1,; s,@version@,$(packaging/version.sh)," \
		crates/streams/psp-reserve/psp_reserve.pc.in >"$root$1/pkgconfig/psp_reserve.pc"
}

[ $# -ge 2 ] || usage
# An absolute path, because make works in several folders.
root=$(realpath -m -- "$2")
case $1-$# in
command-2) install_command ;;
plugin-3)
	make --no-print-directory -C tc install DESTDIR="$root" TC_LIB_DIR="$3"
	install -D -m 644 docs/man/tc-psp.8 "$root/usr/share/man/man8/tc-psp.8"
	;;
library-3) install_library "$3" ;;
reserve-3) install_reserve "$3" ;;
reserve-dev-3) install_reserve_dev "$3" ;;
module-2) make --no-print-directory -C kernel dkms-source DESTDIR="$root" ;;
*) usage ;;
esac
