#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced in the laboratory's guest.

# installed FOLDER: makes the command there /usr/bin/pspacer, with nothing between it and the kernel: its
# libraries become the guest's. mv replaces what programs that run have open.
installed() {
	mkdir -p /usr/bin
	for file in "$1"/*.so "$1"/*.so.*; do
		case $file in
		*/ld.so) mv "$file" /lib64/ld-linux-x86-64.so.2 ;;
		*) mv "$file" /lib/x86_64-linux-gnu/ ;;
		esac
	done
	mv "$1/pspacer" /usr/bin/pspacer
}
