#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes a text of one series out of the text of all.
#
# usage: upto.pl SERIES <TEXT >TEXT
#
# @from SERIES    what follows is in this series and in those after it,
# @until SERIES   or only in those before it,
# @only SERIES    or only in that one,
# @always         or again in all of them

use strict;
use warnings;

my @order = qw(first ceil launch);
my %at = map { $order[$_] => $_ } 0 .. $#order;
my $names = join ', ', @order;
die "usage: upto.pl SERIES <TEXT >TEXT; a series is one of $names\n"
	unless @ARGV == 1 && exists $at{$ARGV[0]};
my $upto = $at{$ARGV[0]};
my $in = 1;

while (my $line = <STDIN>) {
	if ($line =~ /^\@(from|until|only) (.*)$/) {
		die "upto.pl: line $.: no series $2; one of $names\n" unless exists $at{$2};
		$in = $1 eq 'from' ? $upto >= $at{$2} :
			$1 eq 'until' ? $upto < $at{$2} : $upto == $at{$2};
	} elsif ($line =~ /^\@always$/) {
		$in = 1;
	} elsif ($in) {
		print $line;
	}
}
