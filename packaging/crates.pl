#!/usr/bin/perl
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Lists the crates that are compiled into the pspacer command, out of `cargo metadata`:
# those that it and pspacer-node need on this machine's target, with default features.
#
# usage: crates.pl sbom      CycloneDX 1.5, JSON
#        crates.pl notices   names, licences, and the texts that come with the crates
#        crates.pl check     reads a CycloneDX document from standard input; complains
#                            about what the format requires and the document lacks
#
# The same sources give the same bytes: no time and no serial number is written.

use strict;
use warnings;
use JSON::PP;
use Digest::SHA qw(sha256_hex);
use File::Basename qw(dirname basename);

my $COMMAND = 'pspacer';
my $TOP = dirname(dirname($0));

# Returns what cargo knows about the workspace and its crates, for this target alone.
sub metadata {
	my ($target) = map { /^host: (\S+)/ ? $1 : () } `rustc -vV`;
	die "crates.pl: rustc -vV names no host\n" unless $target;
	my $path = "$TOP/Cargo.toml";
	open my $cargo, '-|', 'cargo', 'metadata', '--locked', '--format-version', '1',
		'--filter-platform', $target, '--manifest-path', $path or die "crates.pl: cargo: $!\n";
	local $/;
	my $text = <$cargo>;
	close $cargo or die "crates.pl: cargo metadata failed\n";
	return JSON::PP->new->utf8->decode($text);
}

# Returns the packages that the command is linked with, sorted, and what each needs.
# Crates that run while it is built, and those of tests, are left out.
sub linked {
	my ($all) = @_;
	my %package = map { $_->{id} => $_ } @{$all->{packages}};
	my %node = map { $_->{id} => $_ } @{$all->{resolve}{nodes}};
	my ($root) = grep { $_->{name} eq $COMMAND } values %package;
	die "crates.pl: the workspace has no package $COMMAND\n" unless $root;
	my (%needs, @open);
	# The agent of nodes has crates that the command has not.
	@open = map { $_->{id} } grep { $_->{name} eq $COMMAND || $_->{name} eq 'node' } values %package;
	while (defined(my $id = pop @open)) {
		next if $needs{$id};
		my @deps = grep { grep { !defined $_->{kind} } @{$_->{dep_kinds}} } @{$node{$id}{deps}};
		$needs{$id} = [map { $_->{pkg} } @deps];
		push @open, @{$needs{$id}} unless is_macro($package{$id});
	}
	my @found = sort { $a->{name} cmp $b->{name} || $a->{version} cmp $b->{version} }
		map { $package{$_} } keys %needs;
	return ($root, \@found, \%needs, \%package);
}

# A procedural macro runs in the compiler; what it needs is not in the command.
sub is_macro {
	my ($package) = @_;
	return grep { grep { $_ eq 'proc-macro' } @{$_->{kind}} } @{$package->{targets}};
}

sub is_ours {
	return !defined $_[0]{source};
}

sub reference {
	my ($package) = @_;
	return "pkg:cargo/$package->{name}\@$package->{version}";
}

# The digests that Cargo.lock has, by name and version.
sub digests {
	open my $lock, '<', "$TOP/Cargo.lock" or die "crates.pl: Cargo.lock: $!\n";
	my (%digest, $name, $version);
	while (<$lock>) {
		$name = $1 if /^name = "(.*)"/;
		$version = $1 if /^version = "(.*)"/;
		$digest{"$name $version"} = $1 if /^checksum = "(.*)"/;
	}
	return \%digest;
}

sub component {
	my ($package, $digest) = @_;
	my %made = (
		type => is_ours($package) && $package->{name} eq $COMMAND ? 'application' : 'library',
		'bom-ref' => reference($package),
		name => $package->{name},
		version => $package->{version},
		purl => reference($package),
	);
	# Older crates write "MIT/Apache-2.0".
	(my $licence = $package->{license} // '') =~ s,\s*/\s*, OR ,g;
	$made{licenses} = [{ expression => $licence }] if $licence;
	$made{description} = $package->{description} if $package->{description};
	$made{description} =~ s/\s+/ /g if $made{description};
	my $known = $digest->{"$package->{name} $package->{version}"};
	$made{hashes} = [{ alg => 'SHA-256', content => $known }] if $known;
	return \%made;
}

sub sbom {
	my $digest = digests();
	my ($root, $found, $needs, $package) = linked(metadata());
	my @others = grep { $_->{id} ne $root->{id} } @$found;
	my @edges = map {
		my @refs = sort map { reference($package->{$_}) } grep { $needs->{$_} } @{$needs->{$_->{id}}};
		{ ref => reference($_), dependsOn => \@refs }
	} @$found;
	my $bom = {
		bomFormat => 'CycloneDX',
		specVersion => '1.5',
		version => 1,
		metadata => { component => component($root, $digest) },
		components => [map { component($_, $digest) } @others],
		dependencies => \@edges,
	};
	print JSON::PP->new->utf8->canonical->pretty->indent_length(1)->encode($bom);
}

# Returns the licence texts of a crate: name of the file, and text.
sub texts {
	my ($package) = @_;
	my $folder = dirname($package->{manifest_path});
	my @files = sort grep { -f && basename($_) =~ /^(licen[cs]e|copying|copyright|notice|unlicense)/i } glob "'$folder'/*";
	return map {
		open my $file, '<:raw', $_ or die "crates.pl: $_: $!\n";
		local $/;
		[basename($_), scalar <$file>];
	} @files;
}

# Texts that several crates share are printed once.
sub notices {
	my (undef, $found) = linked(metadata());
	my (%text, %users, @order);
	print "Crates of others that are compiled into pspacer, with their licences.\n";
	print "The texts that come with them follow.\n\n";
	for my $package (grep { !is_ours($_) } @$found) {
		printf "%s %s: %s\n", $package->{name}, $package->{version}, $package->{license} // 'see its text';
		for (texts($package)) {
			my ($name, $words) = @$_;
			my $key = sha256_hex($words);
			push @order, $key unless $text{$key};
			$text{$key} = $words;
			push @{$users{$key}}, "$package->{name} $package->{version} $name";
		}
	}
	for my $key (@order) {
		print "\n", '=' x 78, "\n", map { "$_\n" } @{$users{$key}};
		print '-' x 78, "\n", $text{$key};
		print "\n" unless $text{$key} =~ /\n\z/;
	}
}

# What the schema of CycloneDX 1.5 requires of the members that `sbom` writes.
sub complaints {
	my ($bom) = @_;
	my @bad;
	push @bad, 'bomFormat: expected CycloneDX' if ($bom->{bomFormat} // '') ne 'CycloneDX';
	push @bad, 'specVersion: expected 1.5' if ($bom->{specVersion} // '') ne '1.5';
	push @bad, 'version: expected a number from 1' if ($bom->{version} // '') !~ /^[1-9]\d*$/;
	my (%known, %type);
	$type{$_} = 1 for qw(application framework library container platform operating-system
		device device-driver firmware file machine-learning-model data);
	for my $part ($bom->{metadata}{component}, @{$bom->{components} // []}) {
		my $name = $part->{name} // '';
		push @bad, 'a component has no name' if $name eq '';
		push @bad, "$name: type is no type of component" unless $type{$part->{type} // ''};
		push @bad, "$name: no version" unless length($part->{version} // '');
		my $ref = $part->{'bom-ref'} // '';
		push @bad, "$name: bom-ref is missing or used twice" if $ref eq '' || $known{$ref}++;
		push @bad, "$name: no licence" unless @{$part->{licenses} // []};
		for (@{$part->{hashes} // []}) {
			push @bad, "$name: hash" unless $_->{alg} eq 'SHA-256' && $_->{content} =~ /^[0-9a-f]{64}$/;
		}
	}
	my %seen;
	for my $edge (@{$bom->{dependencies} // []}) {
		push @bad, "dependencies: $edge->{ref} is there twice" if $seen{$edge->{ref}}++;
		for ($edge->{ref}, @{$edge->{dependsOn} // []}) {
			push @bad, "dependencies: $_ is no component" unless $known{$_};
		}
		my %once;
		push @bad, "dependencies: $edge->{ref} names one twice" if grep { $once{$_}++ } @{$edge->{dependsOn} // []};
	}
	return @bad;
}

sub check {
	local $/;
	my $bom = eval { JSON::PP->new->utf8->decode(scalar <STDIN>) } or die "crates.pl: no JSON: $@";
	my @bad = complaints($bom);
	print STDERR "crates.pl: $_\n" for @bad;
	exit 1 if @bad;
	printf "%d components\n", 1 + @{$bom->{components}};
}

my %does = (sbom => \&sbom, notices => \&notices, check => \&check);
my $what = @ARGV == 1 ? $does{$ARGV[0]} : undef;
if (!$what) {
	print STDERR "usage: $0 sbom|notices|check\n";
	exit 2;
}
$what->();
