#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Breaks a copy of the core in each way of mutants.txt and asks whether the tests of
# crates/base/pace notice. The quickest tests run first, up to the first that fails. A test
# that hangs has noticed, too.
#
# usage: run.sh [--only NAME]... [--list] [--commit REV]
#   --only NAME   runs this mutant; may be repeated
#   --list        prints the names of all mutants
#   --commit REV  takes a commit instead of the working tree
#   JOBS          mutants side by side (2)
#   LIMIT         a test hangs if it takes more processor time than six times that
#                 without a mutant and LIMIT seconds (5)
#   CARGO_TARGET_DIR  its folder mutation/ holds what is built (target)
# Exit status: 0 at least 95 % caught; 1 less, or the list is out of date.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
list=$here/mutants.txt
top=$(cd "$here/../.." && pwd)
apply=$here/apply.pl
least=95

# compile FOLDER: compiles the core, with what tests call, as FOLDER/libpace_core.so.
compile() (
	cd "$1"
	${CC:-cc} -std=gnu11 -ffreestanding -O1 -fPIC -w -shared -I . -I include \
		-I deps/host -o libpace_core.so shim.c
)

# one NAME: tests a mutant and prints NAME STATUS TEST SECONDS.
one() {
	name=$1
	folder=$MUTATION/mutants/$name
	rm -rf "$folder"
	mkdir -p "$folder/run"
	cp -r "$MUTATION/core/." "$folder"
	start=$(date +%s)
	status=MISSED
	by=-
	# A mutant that does not apply or compile is an error of the list.
	if ! perl "$apply" "$list" apply "$name" "$folder/src" ||
		! compile "$folder" >&2; then
		status=BROKEN
	elif cmp -s "$folder/libpace_core.so" "$MUTATION/core/libpace_core.so"; then
		status=SAME
	else
		while read -r seconds test program; do
			said=0
			# shellcheck disable=SC2086 # a program and its filter
			(
				# Processor time, so that a busy machine does not look like a hang.
				ulimit -t "$((6 * seconds + ${LIMIT:-5}))"
				cd "$folder/run" && LD_LIBRARY_PATH=$folder exec $program -q
			) >"$folder/log" 2>&1 || said=$?
			if [ $said -ne 0 ]; then
				status=caught
				by=$test
				case $said in 137 | 152) by=$test,hangs ;; esac
				break
			fi
		done <"$MUTATION/programs"
	fi
	if [ $status = MISSED ] && perl "$apply" "$list" show "$name" | grep -q '^~'; then
		status=equivalent
	fi
	rm -rf "$folder"
	echo "$name $status $by $(($(date +%s) - start))"
}

if [ "${1:-}" = --one ]; then
	one "$2"
	exit
fi

only= commit=
while [ $# -gt 0 ]; do
	case $1 in
	--only)
		only="$only $2"
		shift
		;;
	--commit)
		commit=$2
		shift
		;;
	--list)
		perl "$apply" "$list" names
		exit
		;;
	-h | --help)
		sed -n '3,/^set/{s/^# \{0,1\}//p;}' "$0"
		exit
		;;
	*)
		echo "run.sh: unknown option $1" >&2
		exit 2
		;;
	esac
	shift
done
[ -n "$only" ] || only=$(perl "$apply" "$list" names)

target=${CARGO_TARGET_DIR:-$top/target}
mkdir -p "$target/mutation"
MUTATION=$(cd "$target/mutation" && pwd)
export MUTATION
# The seed is that of `make test`. Only the verdict counts, so failures are not shrunk.
unset PSPACER_SEED PROPTEST_RNG_SEED
export PROPTEST_MAX_SHRINK_ITERS=0 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1
exec 9>"$MUTATION/lock"
flock -n 9 || {
	echo "run.sh: another run is under way in $MUTATION" >&2
	exit 1
}

# The tree holds a workspace of this crate alone.
tree=$MUTATION/tree
rm -rf "$tree" "$MUTATION/core" "$MUTATION/mutants"
mkdir -p "$tree" "$MUTATION/mutants"
cd "$top"
if [ -n "$commit" ]; then
	git archive "$commit" core crates/base/pace crates/base/testkit fuzz/corpus Cargo.toml Cargo.lock |
		tar -x -C "$tree"
else
	git ls-files -z --cached --others --exclude-standard core crates/base/pace crates/base/testkit fuzz/corpus Cargo.toml Cargo.lock |
		tar -c --null --files-from=- --ignore-failed-read 2>/dev/null | tar -x -C "$tree"
fi
perl -0pi -e 's/^members = \[.*?\]/members = ["crates\/base\/*"]/ms' "$tree/Cargo.toml"
cp -r "$tree/core" "$MUTATION/core"
cp "$tree/crates/base/pace/src/shim.c" "$MUTATION/core/"
cp "$here/build.rs" "$tree/crates/base/pace/build.rs"
compile "$MUTATION/core"

echo "building the tests" >&2
programs=$(cd "$tree" &&
	MUTATION_CORE=$MUTATION/core CARGO_TARGET_DIR=$MUTATION/built CARGO_PROFILE_TEST_DEBUG=0 \
		cargo test --package pace --no-run 2>&1) || {
	echo "$programs" >&2
	exit 1
}
# A line for each file of tests: its name, the program, and the filter that chooses the file.
# freestanding compiles the core itself, so it cannot notice a mutant.
echo "$programs" | sed -n 's/.*Executable.* \(src\|tests\)\/\([a-z_]*\)\.rs (\(.*\))$/\2 \3/p' |
	while read -r file program; do
		if [ "$file" = main ]; then
			LD_LIBRARY_PATH=$MUTATION/core "$program" --list --format terse | sed -n 's/^\([a-z_]*\)::.*: test$/\1/p' | sort -u |
				sed "s|.*|& $program &::|"
		else
			echo "$file $program"
		fi
	done | grep -v '^freestanding ' >"$MUTATION/all"
[ -s "$MUTATION/all" ] || {
	echo "run.sh: no tests found" >&2
	exit 1
}

# A test that fails without a mutant catches nothing. The others are sorted, the quickest
# first. agreement counts as a twentieth of its time, because random operations fail early.
while read -r test program; do
	before=$(date +%s%N)
	# shellcheck disable=SC2086
	(cd "$MUTATION/mutants" && LD_LIBRARY_PATH=$MUTATION/core $program -q) >"$MUTATION/log" 2>&1 || {
		cat "$MUTATION/log" >&2
		echo "run.sh: $test fails without a mutant" >&2
		exit 1
	}
	us=$((($(date +%s%N) - before) / 1000))
	seconds=$((us / 1000000))
	[ "$test" != agreement ] || us=$((us / 20))
	echo "$us $seconds $test $program"
done <"$MUTATION/all" | sort -n | cut -d ' ' -f 2- >"$MUTATION/programs"
[ "$(wc -l <"$MUTATION/programs")" = "$(wc -l <"$MUTATION/all")" ] || exit 1

started=$(date +%s)
: >"$MUTATION/results"
# shellcheck disable=SC2086 # a list
total=$(printf '%s\n' $only | wc -l)
printf '%-42s %-10s %-16s %s\n' mutant result 'first test' seconds
# shellcheck disable=SC2086
printf '%s\n' $only | xargs -P "${JOBS:-2}" -n 1 "$here/run.sh" --one 9>&- |
	while read -r name status by seconds; do
		echo "$name $status $by $seconds" >>"$MUTATION/results"
		printf '%-42s %-10s %-16s %7d\n' "$name" "$status" "$by" "$seconds"
		[ ! -t 2 ] || printf '%d of %d\r' "$(wc -l <"$MUTATION/results")" "$total" >&2
	done
perl "$apply" "$list" names | while read -r name; do
	grep -q "^$name equivalent " "$MUTATION/results" || continue
	printf '%s, equivalent: ' "$name"
	perl "$apply" "$list" show "$name" | sed -n 's/^~ //p'
done
awk -v least=$least -v s=$(($(date +%s) - started)) -v total="$total" '
	{ n[$2]++ }
	END {
		judged = n["caught"] + n["MISSED"]
		percent = judged ? 100 * n["caught"] / judged : 0
		printf "%d mutants: %d caught, %d missed, %d equivalent: %.1f %% caught, in %d s\n",
			NR, n["caught"], n["MISSED"], n["equivalent"], percent, s
		if (n["BROKEN"] + n["SAME"])
			printf "%d of the list are out of date: they do not apply, compile or change anything\n",
				n["BROKEN"] + n["SAME"]
		exit !(percent >= least && NR == total && !(n["BROKEN"] + n["SAME"]))
	}' "$MUTATION/results"
