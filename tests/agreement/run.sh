#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compares what `pspacer stalls` finds in captures with what tshark and tcptrace find: connections
# and retransmissions of each file, and why they differ.
#
#   tests/agreement/run.sh FOLDER [EVERY]    all captures below FOLDER, or one of EVERY
#
# Needs tshark and jq; compares with tcptrace where it is installed. PSPACER, TSHARK and TCPTRACE
# name other programs. Prints a table for each tool. Captures of others are never committed.
set -u
folder=${1:?"FOLDER: expected a folder with captures"}
every=${2:-1}
pspacer=${PSPACER:-pspacer} tshark=${TSHARK:-tshark} tcptrace=${TCPTRACE:-tcptrace}
for tool in "$pspacer" "$tshark" jq; do
	command -v "$tool" > /dev/null || { echo "$tool: expected to be installed" >&2; exit 2; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Connections, retransmitted segments, what makes a difference to others, and notes.
ours() {
	timeout 60 "$pspacer" stalls --json "$1" 2> /dev/null > "$work/ours.json" || return 1
	jq -r '
		def again: .fast + .timeout + .after_timeout + .probe + .unclear;
		[(.connections | length),
		 ([.connections[].flows[].retransmissions | again] | add // 0),
		 ([.connections[] | [.client, .server] | sort | join(" ")] | length - (unique | length)),
		 (if any(.connections[]; .encapsulation > 0) then 1 else 0 end),
		 ([.notes[], .connections[].notes[]] | join(" "))] | @tsv' "$work/ours.json"
}

# A line for each TCP segment that tshark finds.
segments() {
	timeout 120 "$tshark" -n -r "$1" -Y tcp -T fields -E occurrence=l \
		-e tcp.stream -e frame.protocols -e tcp.len -e tcp.flags.syn \
		-e tcp.analysis.retransmission -e tcp.analysis.fast_retransmission \
		-e tcp.analysis.spurious_retransmission -e tcp.analysis.out_of_order \
		-e tcp.analysis.keep_alive -e tcp.analysis.zero_window_probe 2> /dev/null
}

# From those: connections, those that only an ICMP error or an sFlow sample quotes, retransmissions
# with data, FINs without data that are repeated, segments out of order, probes, the largest segment that was retransmitted.
theirs() {
	awk -F '\t' '
		{ seen[$1] = 1; if ($2 !~ /icmp|sflow/) real[$1] = 1 }
		$5 || $6 || $7 { if ($3 > 0) { data++; if ($3 > most) most = $3 } else if ($4 !~ /1|[Tt]rue/) none++ }
		$8 && $3 > 0 { late++ }
		($9 || $10) { probes++ }
		END { for (s in seen) all++; for (s in real) whole++
		      printf "%d\t%d\t%d\t%d\t%d\t%d\t%d\n", all, all - whole, data, none, late, probes, most }'
}

# Why the numbers of connections differ.
of_connections() { # ours theirs quoted repeated encapsulated notes
	if [ "$1" = "$2" ]; then echo same
	elif [ "$1" = $(($2 - $3)) ]; then echo "tshark counts what ICMP errors and sFlow samples quote"
	elif [ "$1" -gt "$2" ] && [ "$5" = 1 ] && [ "$4" -gt 0 ]; then echo "VLANs or tunnels told apart"
	elif [ "$1" -gt "$2" ] && [ "$4" -gt 0 ]; then echo "ports used again told apart"
	elif [ "$1" -lt "$2" ] && [[ $6 == *"link type"* || $6 == *"not read"* ]]; then echo "a link type or layer that is not read, and named"
	elif [ "$1" -lt "$2" ] && [[ $6 == *cut* || $6 == *fragment* ]]; then echo "headers cut off or in fragments, and named"
	else echo other
	fi
}

# Why the numbers of retransmissions differ.
of_retransmissions() { # ours data none late probes most notes
	if [ "$1" = "$2" ]; then echo same
	elif [ "$1" = $(($2 + $3)) ]; then echo "a FIN without data that is repeated counts"
	elif [ "$1" -gt "$2" ] && [ "$1" -le $(($2 + $3 + $4)) ]; then echo "FINs that are repeated count, and late segments that are repairs"
	elif [ "$1" -gt "$2" ] && [[ $7 == *"never captured"* ]]; then echo "the capture lacks packets between, and says so"
	elif [ "$1" = $(($2 + $4)) ]; then echo "tshark takes a repair for overtaken"
	elif [ "$1" -lt "$2" ] && [[ $7 == *twice* ]]; then echo "packets captured twice are none"
	elif [ "$1" -lt "$2" ] && [ "$5" -gt 0 ]; then echo "probes and keep-alives are none"
	elif [ "$1" -gt "$2" ] && [ "$6" -gt 1460 ]; then echo "a packet of several segments counts as several"
	elif [ "$1" -lt "$2" ] && [ "$4" -gt 0 ]; then echo "late segments without a repair are overtaken"
	else echo other
	fi
}

number=0
while read -r file; do
	number=$((number + 1))
	[ $((number % every)) = 0 ] || continue
	found=$(ours "$file") || continue
	IFS=$'\t' read -r connections again repeated encapsulated notes <<< "$found"
	[ "$connections" -gt 0 ] || continue
	IFS=$'\t' read -r all quoted data none late probes most < <(segments "$file" | theirs)
	[ "$all" -gt 0 ] || continue
	why=$(of_connections "$connections" "$all" "$quoted" "$repeated" "$encapsulated" "$notes")
	why_again=$(of_retransmissions "$again" "$data" "$none" "$late" "$probes" "$most" "$notes")
	printf 'tshark\tconnections\t%s\n' "$why" >> "$work/lines"
	printf 'tshark\tretransmissions\t%s\n' "$why_again" >> "$work/lines"
	[ "$why" != other ] || printf 'other\tconnections\t%s\t%s\t%s\n' "$file" "$connections" "$all" >> "$work/lines"
	[ "$why_again" != other ] || printf 'other\tretransmissions\t%s\t%s\t%s\n' "$file" "$again" "$data" >> "$work/lines"
	command -v "$tcptrace" > /dev/null || continue
	timeout 60 "$tcptrace" -n -l "$file" 2> /dev/null > "$work/tcptrace" || true
	traced=$(sed -n 's/^\([0-9]*\) TCP connections\{0,1\} traced.*/\1/p' "$work/tcptrace")
	sum=$(awk '/rexmt data pkts:/ { s += $4 + $8 } END { print s + 0 }' "$work/tcptrace")
	# Where two of three tools agree, the third is named.
	against() { # ours tshark's tcptrace's
		if [ -z "$3" ]; then echo "tcptrace does not read the file"
		elif [ "$1" = "$3" ]; then echo same
		elif [ "$1" = "$2" ]; then echo "tshark agrees with pspacer"
		elif [ "$2" = "$3" ]; then echo "tshark agrees with tcptrace"
		else echo "all three differ"
		fi
	}
	printf 'tcptrace\tconnections\t%s\n' "$(against "$connections" "$all" "$traced")" >> "$work/lines"
	printf 'tcptrace\tretransmissions\t%s\n' "$(against "$again" "$data" "${traced:+$sum}")" >> "$work/lines"
done < <(find "$folder" -type f -size +0 | LC_ALL=C sort)

for tool in tshark tcptrace; do
	grep -q "^$tool" "$work/lines" 2> /dev/null || continue
	printf '\n| files, beside %s | connections | retransmissions |\n|---|---|---|\n' "$tool"
	awk -F '\t' -v tool="$tool" '
		$1 == tool { n[$3, $2]++; why[$3] = 1 }
		END { for (w in why) printf "| %s | %d | %d |\n", w, n[w, "connections"], n[w, "retransmissions"] }' \
		"$work/lines" | LC_ALL=C sort
done
grep '^other' "$work/lines" || true
