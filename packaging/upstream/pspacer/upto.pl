#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes a text of one series out of the text of all.
#
# usage: upto.pl SERIES <TEXT >TEXT
#
# @from SERIES    what follows is in this series and in those after it,
# @until SERIES   or only in those before it,
# @only SERIES... or only in those,
# @always         or again in all of them
# @insert FILE    a file beside this script, but for its first line

use strict;
use warnings;
use FindBin;

my @order = qw(first ceil launch gap);
my %at = map { $order[$_] => $_ } 0 .. $#order;
my $names = join ', ', @order;
die "usage: upto.pl SERIES <TEXT >TEXT; a series is one of $names\n"
	unless @ARGV == 1 && exists $at{$ARGV[0]};
my $upto = $at{$ARGV[0]};
my $in = 1;

while (my $line = <STDIN>) {
	if ($line =~ /^\@(from|until|only) (.*)$/) {
		my ($how, $which) = ($1, $2);
		my @at = map { $at{$_} // die "upto.pl: line $.: no series $_; one of $names\n" }
			$how eq 'only' ? split(/ /, $which) : $which;
		$in = $how eq 'from' ? $upto >= $at[0] :
			$how eq 'until' ? $upto < $at[0] : grep { $upto == $_ } @at;
	} elsif ($line =~ /^\@always$/) {
		$in = 1;
	} elsif ($in && $line =~ /^\@insert (\S+)$/) {
		open my $file, '<', "$FindBin::Bin/$1" or die "upto.pl: $1: $!\n";
		<$file>;
		print while <$file>;
	} elsif ($in) {
		print $line;
	}
}
