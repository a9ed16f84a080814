#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes a C file out of a template: functions, structures and constants of core/ are taken by
# name, so that the kernel has no scheduler of its own.
#
# usage: take.pl CORE <TEMPLATE >FILE
#
# @take FILE NAME   the definition of NAME in CORE/src/FILE or CORE/include/pace/FILE, and the
#                   comment above it; @bare FILE NAME leaves the comment out
# @-TEXT            lines below one of those: the definition has this text, once or more.
# @+TEXT            It becomes this, or nothing. It is an error if there is no such text.
#
# Afterwards names are the kernel's: pspacer_ for pace_.

use strict;
use warnings;

my ($core) = @ARGV;
die "usage: take.pl CORE <TEMPLATE >FILE\n" unless @ARGV == 1 && -d "$core/src";

my %files;

sub text_of {
	my ($name) = @_;
	return $files{$name} if $files{$name};
	my ($path) = grep { -f } "$core/src/$name", "$core/include/pace/$name";
	die "take.pl: no file $name in $core\n" unless $path;
	open my $file, '<', $path or die "take.pl: $path: $!\n";
	local $/;
	return $files{$name} = scalar <$file>;
}

# Returns the comment and the definition of a name.
sub definition {
	my ($name, $what) = @_;
	my $text = text_of($name);
	my @forms = (
		qr{^(\#define \Q$what\E\b(?:[^\n]*\\\n)*[^\n]*\n)}m,
		qr{^(struct \Q$what\E \{\n.*?^\};\n)}ms,
		qr{^((?:static [^\n;=]*|[a-z][^\n;=]*)\b\Q$what\E\([^;\{]*\)\n\{\n.*?^\}\n)}ms,
	);
	for my $form (@forms) {
		while ($text =~ /$form/g) {
			my ($code, $before) = ($1, substr $text, 0, $-[1]);
			my $above = $before =~ m{(^/\*(?:(?!\*/).)*\*/\n)\z}ms ? $1 : '';
			return ($above, $code);
		}
	}
	die "take.pl: $name has no $what\n";
}

# Returns the column behind a text in a line, where a tab goes to the next eighth.
sub column {
	my ($at, $text) = @_;
	for (split //, $text) {
		$at = $_ eq "\t" ? $at - $at % 8 + 8 : $at + 1;
	}
	return $at;
}

# Aligns each line that goes on in parentheses with the innermost of them.
sub align {
	my ($text) = @_;
	my ($out, @open) = ('');
	for my $line (split /^/, $text) {
		if (@open && $line =~ /\S/ && $open[-1] >= 0) {
			$line =~ s/^\s+//;
			my $to = $open[-1];
			$line = "\t" x int($to / 8) . ' ' x ($to % 8) . $line;
		}
		my $at = 0;
		for my $char (split //, $line) {
			$at = column($at, $char);
			push @open, $at if $char eq '(';
			push @open, -1 if $char eq '{';
			pop @open if $char =~ /[)}]/;
		}
		$out .= $line;
	}
	return $out;
}

# Breaks lines of code that are longer than 80 columns: behind a comma or an operator, or
# behind the type of a function.
sub wrap {
	my ($text) = @_;
	my $out = '';
	for my $line (split /^/, $text) {
		chomp $line;
		if (column(0, $line) > 80 && $line !~ m{^\s*(?:/?\*|#)|/\*}) {
			my $at = 0;
			while ($line =~ /(?:,|&&|\|\||[^-]>|<|[^*]=| [-+]) (?=\S)/g) {
				$at = pos $line if column(0, substr $line, 0, pos($line) - 1) <= 80;
			}
			if ($at && $line =~ /\(/) {
				my $rest = substr $line, $at;
				($line = substr $line, 0, $at) =~ s/ $//;
				$line .= "\n" . ($line =~ /^(\t*)/)[0] . "\t$rest";
			} else {
				$line =~ s/^(static .*[ *])(\w+\()/($1 =~ s{ $}{}r) . "\n$2"/e;
			}
		}
		$out .= "$line\n";
	}
	return $out;
}

# Names of core that have no prefix.
my $bare_names = join '|', qw(queue_head remove_from_queue insert_waiting insert_eligible
	silent_unit rebase lag_of lag_in_order virtual_time_lag has_to_promote promote_first
	promote_eligible first_in_eligible insert_in_queue ceil_slack is_below_ceil
	ceil_head ceil_add insert_borrowing insert_at_ceil promote_borrowing ceil_advance at_rate join_paced launch_position launch_begin
	gap_frame);

# Fills the text of a comment into lines of 80 columns, if one of them is longer.
sub fill {
	my ($indent, $body) = @_;
	my $room = 80 - column(0, $indent) - 3;
	my $whole = "$indent/*$body*/";
	return $whole unless grep { column(0, $_) > 80 } split /\n/, $whole;
	$body =~ s/^\s*\*? ?//mg;
	my ($out, @parts) = ('');
	for my $part (split /\n\n+/, $body) {
		my @lines = ('');
		for my $word (split ' ', $part) {
			my $sep = $lines[-1] eq '' ? '' : ' ';
			if (length("$lines[-1]$sep$word") > $room) {
				push @lines, $word;
			} else {
				$lines[-1] .= "$sep$word";
			}
		}
		push @parts, @parts ? '' : (), @lines;
	}
	$out = "$indent/* $parts[0]\n";
	$out .= $_ eq '' ? "$indent *\n" : "$indent * $_\n" for @parts[1 .. $#parts];
	return "$out$indent */";
}

sub kernel_names {
	my ($text) = @_;
	$text =~ s/\bpace_div_rem\b/div64_u64_rem/g;
	$text =~ s/\bs->cfg\.line_rate_bps\b/s->line_rate_bps/g;
	$text =~ s/\bpace_/pspacer_/g;
	$text =~ s/\bPACE_/PSPACER_/g;
	$text =~ s/\b(?=(?:SILENT|KEY)_UNIT)/PSPACER_/g;
	$text =~ s/\b(?=(?:$bare_names)\b)/pspacer_/g;
	$text =~ s/\(1ull << (\w+)\)/BIT_ULL($1)/g;
	$text =~ s/\(1u << (\w+)\)/BIT($1)/g;
	$text =~ s/^static (?:inline|__always_inline) /static /mg;
	# Comments as in net/, and with one space behind a full stop.
	$text =~ s{/\*\n\s*\* }{/* }g;
	$text =~ s/([.:])  (?=\S)/$1 /g;
	$text = align(wrap($text));
	$text =~ s{^([ \t]*)/\*((?:(?!\*/).)*)\*/$}{fill($1, $2)}gmse;
	return $text;
}

my $out = '';
my $taken;
my ($have, $want);

sub edit {
	return unless defined $have;
	my $count = () = $taken =~ /\Q$have\E/g;
	die "take.pl: not in what was taken:\n$have\n" unless $count;
	$want //= '';
	# Whole lines go with their ends.
	if ($want eq '') {
		$taken =~ s/\Q$have\E\n?//g;
	} else {
		$taken =~ s/\Q$have\E/$want/g;
	}
	($have, $want) = ();
}

sub flush {
	return unless defined $taken;
	edit();
	$taken =~ s/\n\n+(?=\})/\n/g;
	$out .= kernel_names($taken);
	$taken = undef;
}

while (my $line = <STDIN>) {
	if ($line =~ /^@(take|bare) (\S+) (\S+)$/) {
		my ($how, $file, $what) = ($1, $2, $3);
		flush();
		my ($comment, $code) = definition($file, $what);
		my $is_line = $code =~ /^#define/;
		$taken = ($how eq 'take' ? $comment : '') . $code . ($is_line ? '' : "\n");
	} elsif ($line =~ /^@- ?(.*)$/) {
		edit() if defined $want;
		$have = defined $have ? "$have\n$1" : $1;
	} elsif ($line =~ /^@\+ ?(.*)$/) {
		die "take.pl: line $.: no text that this stands for\n" unless defined $have;
		$want = defined $want ? "$want\n$1" : $1;
	} elsif ($line =~ /^@/) {
		die "take.pl: line $.: $line";
	} else {
		flush();
		$out .= $line;
	}
}
flush();
# A constant that stands alone has an empty line below it; there are never two.
$out =~ s/^(#define [^\n]*\n)(?=\/\*|static)/$1\n/mg;
$out =~ s/\n\n\n+/\n\n/g;
$out =~ s{^(/\* [^\n]{0,73})\n \*/$}{$1 */}mg;
print $out;
