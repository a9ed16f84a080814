#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What node_exporter makes of files that contradict each other.
. "$(dirname "$0")/lib.sh"

finding 'series of two files that contradict each other fail the scrape, or set node_textfile_scrape_error' \
	'the scrape answers 200 with what came first, and the error stays 0, where series are the same or types differ.
       1.5 also loses series whose HELP differs from that in another file, with the error 0; 1.9 with 1'

for version in 1.5.0-1+b6 1.9.0-1+b4; do
	case $version in 1.5*) suite=bookworm help=0 ;; *) suite=trixie help=1 ;; esac
	packages "$work/$version" $suite "prometheus-node-exporter=$version"
	scrape() { unshare -n python3 "$here/textfile/scrape.py" "$work/$version" "$@"; }
	n='
'
	one="# TYPE m_a counter${n}m_a{x=\"1\"} 1$n"
	seen "$version, the same series twice" \
		"$(scrape "a.prom=$one" "b.prom=# TYPE m_a counter${n}m_a{x=\"1\"} 2${n}m_b 3$n")" \
		'200, m_a{x="1"} 1, m_b 3, error 0, m_a: counter m_b: untyped'
	seen "$version, another type" "$(scrape "a.prom=$one" "b.prom=# TYPE m_a gauge${n}m_a{x=\"2\"} 2${n}m_b 3$n")" \
		'200, m_a{x="1"} 1, m_b 3, error 0, m_a: counter m_b: untyped'
	seen "$version, another HELP" "$(scrape "a.prom=# HELP m_a One.$n$one" \
		"b.prom=# HELP m_a Two.$n# TYPE m_a counter${n}m_a{x=\"2\"} 2${n}m_b 3$n")" \
		"200, m_a{x=\"1\"} 1, m_b 3, error $help, m_a: counter m_b: untyped"
	seen "$version, the same HELP" "$(scrape "a.prom=# HELP m_a One.$n$one" \
		"b.prom=# HELP m_a One.$n# TYPE m_a counter${n}m_a{x=\"2\"} 2${n}m_b 3$n")" \
		'200, m_a{x="1"} 1, m_a{x="2"} 2, m_b 3, error 0, m_a: counter m_b: untyped'
done
done_
