/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Matches: which packets belong to which class.  Each rule names a class, and the
 * first rule in the file that a packet matches decides.  A rule has its place there
 * as its order.
 *
 * Rules are a list, but for those that look at nothing but one prefix of addresses: where
 * there are several of one length, they are in a table.  A packet belongs to the class of
 * the least order, so the search of the list ends where its orders are beyond what the
 * tables have.
 *
 * Only the first fragment of a datagram has ports, so its class is noted, and those behind
 * it belong there, too.  Of fragments that overtake the first one no class is noted: their
 * own fields count.
 *
 * The maps hold several sets of rules, of ports and halves.  A set begins at a
 * number, its base, which is also part of the other maps' keys.  The loader sets how many
 * entries there are; crates/host/backend/src/match_words.rs knows the structures.
 */
#ifndef MATCH_H
#define MATCH_H

#include "packet.h"

/* Packets of a class: all fields that are named must be these. */
struct match_rule {
	u32 fields;		/* enum match_field */
	u32 order;
	u32 minor;		/* the class's minor number */
	u32 family;
	u32 protocol;
	u32 from[4];
	u32 from_mask[4];
	u32 to[4];
	u32 to_mask[4];
	u32 from_ports;		/* the first << 16 | the last */
	u32 to_ports;
	u32 dscp;
	u32 vlan;
	u32 interface;
	u32 mark;
	u32 cgroup_level;
	u64 cgroup_id;		/* the sender's cgroup, or one above it */
};

/* Most tables of a set. */
#define MATCH_TABLES_MAX 16

/* Prefixes of one length. */
struct match_table {
	u32 side;		/* MATCH_FROM or MATCH_TO */
	u32 family;
	u32 bits;
	u32 mask[4];
};

struct match_tables {
	u32 count;
	struct match_table tables[MATCH_TABLES_MAX];
};

struct match_address {
	u32 base;
	u32 side;		/* MATCH_FROM or MATCH_TO */
	u32 family;
	u32 bits;
	u32 address[4];
};

struct match_datagram {
	u32 base;
	u32 family;
	u32 protocol;
	u32 number;
	u32 from[4];
	u32 to[4];
};

struct match_answer {
	u32 order;
	u32 minor;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct match_rule);
	MAP_NUMBER(max_entries, 1);
} match_rules SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, struct match_address);
	MAP_TYPE(value, struct match_answer);
	MAP_NUMBER(max_entries, 1);
} match_addresses SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct match_tables);
	MAP_NUMBER(max_entries, 1);
} match_tables SEC(".maps");

/* Classes of datagrams in fragments; those that were not seen for longest go. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_TYPE(key, struct match_datagram);
	MAP_TYPE(value, u32);
	MAP_NUMBER(max_entries, 1);
} match_datagrams SEC(".maps");

/* A packet, and the rules to look at. */
struct search {
	struct packet packet;
	u32 mark;
	u32 interface;
	u32 base;
	u32 rules;		/* in the list */
	u32 addresses;		/* in the tables */
	struct match_answer best;
	void *skb;		/* for is_sender_in() */
};

/* Is the packet's sender in this cgroup or below it?  Each program has its own. */
INLINE int is_sender_in(const struct search *s, u64 cgroup_id, u32 level);

/* Calls look() with the numbers of the rules until it returns 1.  Each program has its own. */
INLINE void each_rule(struct search *s);

INLINE int is_in(u32 port, u32 ports)
{
	return port >= ports >> 16 && port <= (ports & 0xffff);
}

INLINE int is_prefix(const u32 *address, const u32 *prefix, const u32 *mask)
{
	u32 differ = 0;

	for (int i = 0; i < 4; i++)
		differ |= (address[i] & mask[i]) ^ prefix[i];
	return !differ;
}

INLINE int matches(const struct match_rule *r, const struct search *s)
{
	const struct packet *p = &s->packet;
	u32 fields = r->fields;

	if (fields & ~p->fields)
		return 0;
	/* What tells most packets apart comes first. */
	return (!(fields & MATCH_TO_PORT) || is_in(p->to_port, r->to_ports)) &&
	       (!(fields & MATCH_FROM_PORT) || is_in(p->from_port, r->from_ports)) &&
	       (!(fields & MATCH_TO) || is_prefix(p->to, r->to, r->to_mask)) &&
	       (!(fields & MATCH_FROM) || is_prefix(p->from, r->from, r->from_mask)) &&
	       (!(fields & MATCH_MARK) || r->mark == s->mark) &&
	       (!(fields & MATCH_DSCP) || r->dscp == p->dscp) &&
	       (!(fields & MATCH_VLAN) || r->vlan == p->vlan) &&
	       (!(fields & MATCH_PROTOCOL) || r->protocol == p->protocol) &&
	       (!(fields & MATCH_FAMILY) || r->family == p->family) &&
	       (!(fields & MATCH_INTERFACE) || r->interface == s->interface) &&
	       (!(fields & MATCH_CGROUP) ||
		is_sender_in(s, r->cgroup_id, r->cgroup_level));
}

/* Looks at a rule of the list.  Returns 1 if none after it counts. */
INLINE long look(u32 number, struct search *s)
{
	u32 key = s->base + number;
	const struct match_rule *rule = bpf_map_lookup_elem(&match_rules, &key);

	if (!rule || rule->order > s->best.order)
		return 1;
	if (!matches(rule, s))
		return 0;
	s->best.order = rule->order;
	s->best.minor = rule->minor;
	return 1;
}

INLINE void look_up(struct search *s, const struct match_table *table)
{
	int is_from = table->side == MATCH_FROM;
	const struct match_answer *answer;
	struct match_address key = {
		.base = s->base,
		.side = table->side,
		.family = table->family,
		.bits = table->bits,
	};

	if (table->family != s->packet.family)
		return;
	for (int i = 0; i < 4; i++)
		key.address[i] = (is_from ? s->packet.from[i] : s->packet.to[i]) & table->mask[i];
	answer = bpf_map_lookup_elem(&match_addresses, &key);
	if (answer && answer->order < s->best.order)
		s->best = *answer;
}

INLINE void look_up_all(struct search *s)
{
	const struct match_tables *all = bpf_map_lookup_elem(&match_tables, &s->base);

	if (!all)
		return;
	for (u32 i = 0; i < MATCH_TABLES_MAX; i++) {
		if (i >= all->count)
			break;
		look_up(s, &all->tables[i]);
	}
}

INLINE void name_datagram(const struct search *s, struct match_datagram *key)
{
	key->base = s->base;
	key->family = s->packet.family;
	key->protocol = s->packet.datagram_protocol;
	key->number = s->packet.datagram;
	__builtin_memcpy(key->from, s->packet.from, sizeof(key->from));
	__builtin_memcpy(key->to, s->packet.to, sizeof(key->to));
}

/*
 * Returns the class that was noted of a packet's datagram, or NULL.  The key is on the stack
 * only here, and in note_datagram(): a program has 512 bytes of stack.
 */
INLINE const u32 *datagram_class(const struct search *s)
{
	struct match_datagram key;

	name_datagram(s, &key);
	return bpf_map_lookup_elem(&match_datagrams, &key);
}

INLINE void note_datagram(const struct search *s)
{
	struct match_datagram key;

	name_datagram(s, &key);
	bpf_map_update_elem(&match_datagrams, &key, &s->best.minor, 0);
}

/*
 * Returns the minor number of the class that the rules say; 0: none.  What the caller
 * has set: all of `s` but the answer.
 */
INLINE u32 match_class(struct search *s)
{
	const u32 *minor;

	if (!s->rules && !s->addresses)
		return 0;
	if (s->packet.fragment == FRAGMENT_LATER) {
		minor = datagram_class(s);
		if (minor)
			return *minor;
	}
	s->packet.fields |= MATCH_MARK | MATCH_INTERFACE | MATCH_CGROUP;
	s->best.order = ~0u;
	s->best.minor = 0;
	if (s->addresses && s->packet.fields & MATCH_FROM)
		look_up_all(s);
	each_rule(s);
	if (s->packet.fragment == FRAGMENT_FIRST)
		note_datagram(s);
	return s->best.minor;
}

#endif
