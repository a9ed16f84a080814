#!/usr/bin/perl
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Writes psp's part of the kernel's specification of the netlink family tc, out of
# uapi/sch_psp.h: what is added to Documentation/netlink/specs/tc.yaml, under the same keys as
# there.
#
# usage: spec.pl >tc.yaml    as "make -C tc statistics" does
#        spec.pl --check    complains if tc.yaml is not what the headers give

use strict;
use warnings;
use File::Basename qw(dirname);

my $HERE = dirname($0);
my $TOP = "$HERE/../..";

sub read_text {
	my ($path) = @_;
	open my $file, '<', $path or die "spec.pl: $path: $!\n";
	local $/;
	return scalar <$file>;
}

my $header = read_text("$TOP/uapi/sch_psp.h");

# Returns a comment of one or several lines as one line.
sub words {
	my ($comment) = @_;
	$comment =~ s/\n\s*\*/ /g;
	$comment =~ s/\s+/ /g;
	$comment =~ s/^ | $//g;
	return $comment;
}

sub dashed {
	(my $name = lc shift) =~ tr/_/-/;
	return $name;
}

# A text as YAML, quoted where it needs to be.
sub quoted {
	my ($text) = @_;
	$text =~ s/'/''/g;
	return "'$text'";
}

# Members of an enum: name, comment. $body is what is between the braces.
sub members {
	my ($body) = @_;
	my @found;
	while ($body =~ m{^\s*([A-Z_0-9]+)(?:\s*=\s*(\d+))?,[ \t]*(?:/\*(.*?)\*/)?}gms) {
		my ($name, $value, $comment) = ($1, $2, words($3 // ''));
		push @found, { name => $name, value => $value, doc => $comment } unless $name =~ /^__/;
	}
	return @found;
}

sub enums {
	my $out = '';
	while ($header =~ /^enum (tc_psp_\w+) \{(.*?)^\};/gms) {
		my ($name, $body) = ($1, $2);
		my @found = members($body);
		# The members of an enum begin with its name, but for those of the statistics' types.
		my $prefix = $name eq 'tc_psp_stats_type' ? 'TC_PSP_STATS' : uc $name;
		$out .= "  -\n    name: " . dashed($name) . "\n    type: enum\n";
		$out .= "    name-prefix: " . dashed($prefix) . "-\n";
		$out .= "    value-start: $found[0]{value}\n" if defined $found[0]{value};
		$out .= "    entries:\n";
		for (@found) {
			(my $entry = $_->{name}) =~ s/^\Q${prefix}_\E//;
			# YAML takes some words for truth values: all are quoted.
			$out .= "      -\n        name: " . quoted(dashed($entry)) . "\n";
			$out .= "        doc: " . quoted($_->{doc}) . "\n" if $_->{doc};
		}
	}
	return $out;
}

sub structs {
	my $out = '';
	while ($header =~ /^struct (tc_psp_\w+) \{(.*?)^\};/gms) {
		my ($name, $body) = ($1, $2);
		$out .= "  -\n    name: " . dashed($name) . "\n    type: struct\n    members:\n";
		while ($body =~ m{^\s*__(u\d+)\s+(\w+)(?:\[(\w+)\])?;}gm) {
			my ($type, $member, $length) = ($1, $2, $3);
			$out .= "      -\n        name: " . dashed($member) . "\n";
			if ($length) {
				my ($count) = $header =~ /^#define \Q$length\E\s+(\d+)/m or die "spec.pl: $length has no value\n";
				my $bytes = $count * substr($type, 1) / 8;
				$out .= "        type: binary\n        len: $bytes\n        doc: $count numbers of type $type\n";
			} else {
				$out .= "        type: $type\n";
			}
		}
	}
	return $out;
}

sub attributes {
	my ($set, $prefix) = @_;
	my ($body) = $header =~ /^enum \{\s*\Q${prefix}\E_UNSPEC,(.*?)^\};/ms or die "spec.pl: no attributes ${prefix}\n";
	my $out = "  -\n    name: $set\n    name-prefix: " . dashed($prefix) . "-\n    attributes:\n";
	for my $member (members($body)) {
		(my $name = $member->{name}) =~ s/^\Q${prefix}_\E//;
		$out .= "      -\n        name: " . dashed($name) . "\n";
		if ($name eq 'PAD') {
			$out .= "        type: pad\n";
			next;
		}
		# A group of attributes may have its comment on the line above.
		$member->{doc} =~ /^(u\d+)\W+(.*)/ or die "spec.pl: $member->{name} has no type in its comment\n";
		my ($type, $doc) = ($1, $2);
		$out .= "        type: $type\n";
		if ($doc =~ s/^enum (tc_psp_\w+)\s*//) {
			$out .= "        enum: " . dashed($1) . "\n";
		}
		$out .= "        doc: " . quoted($doc) . "\n" if $doc;
	}
	return $out;
}

sub spec {
	return <<"END" . enums() . structs()
# SPDX-License-Identifier: MIT OR Apache-2.0
# What psp adds to Documentation/netlink/specs/tc.yaml. packaging/upstream/spec.pl makes it.
#
# TCA_OPTIONS of a class and of its qdisc share one selector, "kind", in tc.yaml. A request
# about a class therefore uses tc-psp-class-attrs by name.
definitions:
END
		. "attribute-sets:\n"
		. attributes('tc-psp-attrs', 'TCA_PSP')
		. attributes('tc-psp-class-attrs', 'TCA_PSP_CLASS')
		. <<'END';
sub-messages:
  -
    name: options-msg
    formats:
      -
        value: pspacer
        attribute-set: tc-psp-attrs
  -
    name: tca-stats-app-msg
    formats:
      -
        value: pspacer
        fixed-header: tc-psp-qdisc-stats
END
}

if (@ARGV == 0) {
	print spec();
} elsif (@ARGV == 1 && $ARGV[0] eq '--check') {
	my $written = read_text("$HERE/tc.yaml");
	if ($written ne spec()) {
		print STDERR "spec.pl: tc.yaml is not what uapi/ gives: make -C tc statistics\n";
		exit 1;
	}
} else {
	print STDERR "usage: $0 [--check]\n";
	exit 2;
}
