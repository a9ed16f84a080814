#!/usr/bin/perl
# SPDX-License-Identifier: MIT OR Apache-2.0
# Breaks a copy of the core in one way out of a list.
#
# usage: apply.pl LIST names            the names in the list, a line each
#        apply.pl LIST show NAME        file, harness or reason, a word a line
#        apply.pl LIST apply NAME DIR   changes the file below DIR
#        apply.pl LIST fits DIR         says which would not apply; changes nothing
#
# The list: entries apart by empty lines,
#   = NAME
#   @ FILE            below DIR
#   - OLD             one line or more as they are, without leading blanks
#   + NEW             what replaces them; may be missing
#   ~ WHY             no test can tell (an equivalent mutant)
#   % WORD            for the caller
# OLD has to be in the file exactly once: code that has moved on is an error,
# never a mutant that is not one.
use strict;
use warnings;

my ($list, $verb, $name, $dir) = @ARGV;
die "usage: apply.pl LIST names|show|apply|fits [NAME] [DIR]\n" unless $verb;

sub slurp {
    my ($path) = @_;
    local $/;
    open(my $in, '<', $path) or die "$path: $!\n";
    return scalar <$in>;
}

my (%entries, @names, $entry);
for my $line (split(/\n/, slurp($list))) {
    next if $line =~ /^(#.*|\s*)$/;
    my ($kind, $text) = $line =~ /^([=@+~%-]) ?(.*)$/ or die "$list: $line\n";
    if ($kind eq '=') {
        die "$list: two are named $text\n" if $entries{$text};
        $entries{$text} = $entry = {};
        push @names, $text;
    } else {
        push @{ $entry->{$kind} }, $text;
    }
}

if ($verb eq 'names') {
    print "$_\n" for @names;
    exit;
}
# Returns the path of the file that an entry changes, and its text then.
sub broken {
    my ($name, $dir) = @_;
    my $entry = $entries{$name};
    my $path  = "$dir/$entry->{'@'}[0]";
    my $text  = slurp($path);
    my $old   = join('\n', map { '[ \t]*' . quotemeta($_) } @{ $entry->{'-'} });
    my @found = $text =~ /^($old)$/mg;
    die "$name: what it changes is " . (@found ? 'more than once' : 'not') . " in $path\n" if @found != 1;
    my ($blanks) = $found[0] =~ /^([ \t]*)/;
    my $new = join("\n", map { $blanks . $_ } @{ $entry->{'+'} || [] });
    $text =~ s/^$old$/$new/m;
    return ($path, $text);
}

if ($verb eq 'fits') {
    my @bad = grep { !eval { broken($_, $name) } && print STDERR $@ } @names;
    exit(@bad > 0);
}
$entry = $entries{$name} or die "$list: no $name\n";
if ($verb eq 'show') {
    print "$_\n" for @{ $entry->{'@'} }, @{ $entry->{'%'} || [] }, map { "~ $_" } @{ $entry->{'~'} || [] };
    exit;
}

my ($path, $text) = broken($name, $dir);
open(my $out, '>', $path) or die "$path: $!\n";
print $out $text;
close($out) or die "$path: $!\n";
