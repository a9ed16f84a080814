// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the matches of bpf/match.h on the host.  Reads sets of 32-bit words until the end:
 * how many rules are in the list, these, the tables of prefixes, how many prefixes are in them,
 * these with their answers, how many packets, and of each packet its bytes' number, the tag
 * beside it (1 << 16 | tag), mark and interface, then its bytes.  Writes the minor number of each
 * packet's class.  Datagrams of another set are others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

static void *look_up_on_host(void *map, const void *key);
static long note_on_host(void *map, const void *key, const void *value, u64 flags);
#define bpf_map_lookup_elem look_up_on_host
#define bpf_map_update_elem note_on_host

#include "match.h"

struct noted {
	struct match_datagram key;
	u32 minor;
};

struct source {
	const u8 *bytes;
	u32 len;
};

struct prefix {
	struct match_address key;
	struct match_answer answer;
};

static struct match_rule *rules;
static u32 rules_count;
static struct match_tables tables;
static struct prefix *prefixes;
static u32 prefixes_count;
static struct noted noted[4096];
static u32 noted_count;

static struct noted *find(const void *key)
{
	for (u32 i = 0; i < noted_count; i++)
		if (!memcmp(&noted[i].key, key, sizeof(noted[i].key)))
			return &noted[i];
	return NULL;
}

static void *look_up_on_host(void *map, const void *key)
{
	if (map == &match_rules) {
		u32 number = *(const u32 *)key;

		return number < rules_count ? &rules[number] : NULL;
	}
	if (map == &match_tables)
		return &tables;
	if (map == &match_addresses) {
		for (u32 i = 0; i < prefixes_count; i++)
			if (!memcmp(&prefixes[i].key, key, sizeof(prefixes[i].key)))
				return &prefixes[i].answer;
		return NULL;
	}
	if (map == &match_datagrams) {
		struct noted *found = find(key);

		return found ? &found->minor : NULL;
	}
	return NULL;
}

static long note_on_host(void *map, const void *key, const void *value, u64 flags)
{
	struct noted *found = find(key);

	if (!found) {
		if (noted_count == sizeof(noted) / sizeof(noted[0]))
			return -1;
		found = &noted[noted_count++];
		memcpy(&found->key, key, sizeof(found->key));
	}
	memcpy(&found->minor, value, sizeof(found->minor));
	return 0;
}

INLINE long read_bytes(const void *source, u32 offset, void *to, u32 len)
{
	const struct source *s = source;

	if (offset > s->len || len > s->len - offset)
		return -1;
	memcpy(to, s->bytes + offset, len);
	return 0;
}

INLINE int is_sender_in(const struct search *s, u64 cgroup_id, u32 level)
{
	return 0;
}

INLINE void each_rule(struct search *s)
{
	for (u32 i = 0; i < s->rules; i++)
		if (look(i, s))
			break;
}

static void must_read(void *to, size_t bytes)
{
	if (bytes && fread(to, bytes, 1, stdin) != 1)
		exit(1);
}

int main(void)
{
	u32 count;

	while (fread(&rules_count, sizeof(rules_count), 1, stdin) == 1) {
		noted_count = 0;
		rules = realloc(rules, (rules_count + 1) * sizeof(*rules));
		if (!rules)
			return 1;
		must_read(rules, rules_count * sizeof(*rules));
		must_read(&tables, sizeof(tables));
		must_read(&prefixes_count, sizeof(prefixes_count));
		prefixes = realloc(prefixes, (prefixes_count + 1) * sizeof(*prefixes));
		if (!prefixes)
			return 1;
		must_read(prefixes, prefixes_count * sizeof(*prefixes));
		must_read(&count, sizeof(count));
		for (u32 i = 0; i < count; i++) {
			struct search search = {};
			u32 about[4], minor;
			u8 bytes[512];
			struct source source = { .bytes = bytes };

			must_read(about, sizeof(about));
			if (about[0] > sizeof(bytes) || about[0] < 14)
				return 1;
			must_read(bytes, about[0]);
			source.len = about[0];
			search.packet.len_bytes = about[0];
			if (about[1]) {
				search.packet.fields = MATCH_VLAN;
				search.packet.vlan = about[1] & 0xfff;
			}
			search.mark = about[2];
			search.interface = about[3];
			search.rules = rules_count;
			search.addresses = prefixes_count;
			read_packet(&source, &search.packet, be16(bytes + 12), 14);
			minor = match_class(&search);
			fwrite(&minor, sizeof(minor), 1, stdout);
		}
	}
	return 0;
}
