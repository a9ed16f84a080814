#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What node_exporter's textfile collector makes of OpenMetrics.
. "$(dirname "$0")/lib.sh"

finding 'the textfile collector refuses OpenMetrics, which is another format, or reads it' \
	'it takes # EOF and # UNIT for comments, and a counter whose TYPE has no _total, as the standard wants, for a series
       without a type: no error says so. A type that it does not know (info), a timestamp or a last line that does not
       end cost the whole file'

for version in 1.5.0-1+b6 1.9.0-1+b4; do
	case $version in 1.5*) suite=bookworm ;; *) suite=trixie ;; esac
	packages "$work/$version" $suite "prometheus-node-exporter=$version"
	scrape() { unshare -n python3 "$here/textfile/scrape.py" "$work/$version" "b.prom=$1"; }
	n='
'
	seen "$version, a counter of OpenMetrics" \
		"$(scrape "# TYPE m_b_bytes counter$n# UNIT m_b_bytes bytes${n}m_b_bytes_total 3$n# EOF$n")" \
		'200, m_b_bytes_total 3, error 0, m_b_bytes_total: untyped'
	seen "$version, the older format" "$(scrape "# TYPE m_b_bytes_total counter${n}m_b_bytes_total 3$n")" \
		'200, m_b_bytes_total 3, error 0, m_b_bytes_total: counter'
	good="m_c 4$n"
	seen "$version, info" "$(scrape "$good# TYPE m_i info${n}m_i_info{a=\"b\"} 1$n")" '200, error 1,'
	seen "$version, a timestamp" "$(scrape "${good}m_d 1 1700000000000$n")" '200, error 1,'
	seen "$version, no end of the last line" "$(scrape "${good}m_d 1")" '200, error 1,'
done
done_
