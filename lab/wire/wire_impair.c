// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loses or delays chosen frames of one direction, so that a transfer stalls for
 * a cause that is known beforehand.
 */
#define pr_fmt(fmt) "wire: " fmt

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/tcp.h>

#include "wire.h"

#define IMPAIR_SEGMENTS_MAX	64	/* segments per rule whose copies are counted */
#define IMPAIR_BYTES_MAX	(1U << 31)	/* per stream: half of the sequence numbers */
#define IMPAIR_NEVER_NS		(U64_MAX / 1000)

struct wire_impair {
	struct wire_impair *next;
	u64 sport, dport;		/* 0: any */
	u64 from_byte, to_byte;		/* offsets in the TCP stream; to_byte 0: any frame */
	u64 copies;			/* 0: all */
	u64 larger_bytes;
	u64 every, random;		/* one frame in `every`; 0: all */
	u64 start_ns, stop_ns;
	u64 late_ns, held;		/* both 0: the frame is lost */

	bool synced;			/* the SYN has been seen */
	u32 first;			/* sequence number of the first byte of data */
	u32 segments;
	struct {
		u32 offset, copies;
	} seen[IMPAIR_SEGMENTS_MAX];
	u64 hits;
};

static const struct tcphdr *tcp_of(const struct sk_buff *skb, const struct wire_flow_key *key,
				   struct tcphdr *space, u32 *payload)
{
	struct iphdr ip_space;
	const struct iphdr *ip = skb_header_pointer(skb, ETH_HLEN, sizeof(ip_space), &ip_space);
	const struct tcphdr *tcp;
	u32 headers;

	if (!ip || key->proto != IPPROTO_TCP || !key->dport)
		return NULL;
	tcp = skb_header_pointer(skb, ETH_HLEN + ip->ihl * 4, sizeof(*space), space);
	if (!tcp)
		return NULL;
	headers = ip->ihl * 4 + tcp->doff * 4;
	*payload = max_t(u32, be16_to_cpu(ip->tot_len), headers) - headers;
	return tcp;
}

/*
 * Counts one more transmission of the segment that begins at @offset. Returns
 * true if it is among the first rule->copies of that segment.
 */
static bool is_early_copy(struct wire_impair *rule, u32 offset)
{
	u32 i;

	if (!rule->copies)
		return true;
	for (i = 0; i < rule->segments && rule->seen[i].offset != offset; i++)
		;
	if (i == IMPAIR_SEGMENTS_MAX)
		return false;
	if (i == rule->segments) {
		rule->seen[i].offset = offset;
		rule->seen[i].copies = 0;
		rule->segments++;
	}
	return rule->seen[i].copies++ < rule->copies;
}

/*
 * Returns true if a segment begins within the rule's bytes of the stream and is
 * an early copy. A SYN restarts the stream.
 */
static bool is_in_stream(struct wire_impair *rule, const struct sk_buff *skb,
			 const struct wire_flow_key *key)
{
	const struct tcphdr *tcp;
	struct tcphdr space;
	u32 payload, offset;

	tcp = tcp_of(skb, key, &space, &payload);
	if (!tcp)
		return false;
	if (tcp->syn) {
		rule->first = be32_to_cpu(tcp->seq) + 1;
		rule->synced = true;
		rule->segments = 0;
		return false;
	}
	offset = be32_to_cpu(tcp->seq) - rule->first;
	return rule->synced && payload && offset >= rule->from_byte && offset < rule->to_byte &&
	       is_early_copy(rule, offset);
}

static bool rule_fits(struct wire_impair *rule, const struct sk_buff *skb,
		      const struct wire_flow_key *key, u64 start_ps)
{
	if ((rule->sport && rule->sport != be16_to_cpu(key->sport)) ||
	    (rule->dport && rule->dport != be16_to_cpu(key->dport)))
		return false;
	if (rule->to_byte && !is_in_stream(rule, skb, key))
		return false;
	if (start_ps < rule->start_ns * 1000 || start_ps >= rule->stop_ns * 1000 ||
	    skb->len <= rule->larger_bytes)
		return false;
	return !rule->every || !wire_uniform(wire_random(&rule->random), rule->every - 1);
}

/*
 * Decides whether a data frame that starts at @start_ps is lost or late. The
 * caller holds the end's lock. Every rule sees every frame, also one that an
 * earlier rule has matched, so that its count of copies and its random choices
 * do not depend on the rules before it.
 */
enum wire_impaired wire_impair(struct wire_end *end, const struct sk_buff *skb, u64 start_ps,
			       struct wire_lateness *lateness)
{
	enum wire_impaired impaired = WIRE_UNIMPAIRED;
	struct wire_flow_key key;
	struct wire_impair *rule;

	wire_frame_key(skb, &key);
	for (rule = end->impair; rule; rule = rule->next) {
		if (!rule_fits(rule, skb, &key, start_ps) || impaired != WIRE_UNIMPAIRED)
			continue;
		rule->hits++;
		impaired = rule->late_ns || rule->held ? WIRE_IMPAIR_LATE : WIRE_IMPAIR_LOST;
		lateness->add_ps = rule->late_ns * 1000;
		lateness->until_ps = rule->held ? rule->stop_ns * 1000 : 0;
	}
	return impaired;
}

/* Inserts a frame into the list of late ones: by arrival, then by departure. */
void wire_late_fly(struct wire_end *end, struct sk_buff *skb)
{
	struct sk_buff **at = &end->late;

	while (*at && wire_cb(*at)->arrive_ps <= wire_cb(skb)->arrive_ps)
		at = &(*at)->next;
	skb->next = *at;
	*at = skb;
}

/* Merges the late frames that have arrived by @now_ps into those in flight. */
void wire_late_join(struct wire_end *end, u64 now_ps)
{
	struct sk_buff **at = &end->flight, *skb;

	while ((skb = end->late) && wire_cb(skb)->arrive_ps <= now_ps) {
		while (*at && wire_cb(*at)->arrive_ps <= wire_cb(skb)->arrive_ps)
			at = &(*at)->next;
		end->late = skb->next;
		if (!*at)
			end->flight_last = skb;
		skb->next = *at;
		*at = skb;
	}
}

static int rule_check(const struct wire_impair *rule)
{
	if (rule->late_ns && rule->held) {
		pr_err("late_ns= and held= are two ways to be late\n");
		return -EINVAL;
	}
	if (rule->held && rule->stop_ns == IMPAIR_NEVER_NS) {
		pr_err("held= asks for stop_ns=\n");
		return -EINVAL;
	}
	if (rule->to_byte ? rule->from_byte >= rule->to_byte : rule->from_byte || rule->copies) {
		pr_err("from_byte= and copies= ask for a larger to_byte=\n");
		return -EINVAL;
	}
	return 0;
}

static void rule_add(struct wire_end *end, struct wire_impair *rule)
{
	struct wire_impair **at = &end->impair;

	spin_lock_bh(&end->lock);
	while (*at)
		at = &(*at)->next;
	*at = rule;
	spin_unlock_bh(&end->lock);
}

/*
 * Refuses a rule that delays frames of a shared port: the port decides in order
 * of arrival, which late frames leave.
 */
static int end_check(struct wire_end *end, const struct wire_impair *rule)
{
	if (!(rule->late_ns || rule->held) || !rcu_access_pointer(end->share))
		return 0;
	pr_err("frames of a shared port cannot be late\n");
	return -EBUSY;
}

static int rule_parse(char *line, struct wire_impair *rule, char side[2])
{
	struct wire_key keys[] = {
		{ "end", .text = side, .max = 2, .required = true },
		{ "sport", &rule->sport, .max = U16_MAX },
		{ "dport", &rule->dport, .max = U16_MAX },
		{ "from_byte", &rule->from_byte, .max = IMPAIR_BYTES_MAX },
		{ "to_byte", &rule->to_byte, .max = IMPAIR_BYTES_MAX },
		{ "copies", &rule->copies, .min = 1, .max = U32_MAX },
		{ "larger_bytes", &rule->larger_bytes, .max = U16_MAX },
		{ "every", &rule->every, .min = 1, .max = U32_MAX },
		{ "seed", &rule->random, .max = U64_MAX },
		{ "start_ns", &rule->start_ns, .max = IMPAIR_NEVER_NS - 1 },
		{ "stop_ns", &rule->stop_ns, .max = IMPAIR_NEVER_NS - 1 },
		{ "late_ns", &rule->late_ns, .max = 100ULL * NSEC_PER_SEC },
		{ "held", &rule->held, .max = 1 },
	};
	int err = wire_parse(line, keys, ARRAY_SIZE(keys));

	if (err)
		return err;
	if (*side != 'a' && *side != 'b') {
		pr_err("end=%s: a or b is expected\n", side);
		return -EINVAL;
	}
	return rule_check(rule);
}

int wire_impair_write(struct wire_cable *cable, char *line)
{
	struct wire_impair *rule = kzalloc(sizeof(*rule), GFP_KERNEL);
	char side[2];
	int err;

	if (!rule)
		return -ENOMEM;
	rule->stop_ns = IMPAIR_NEVER_NS;
	rule->random = 1;
	err = rule_parse(line, rule, side);
	if (!err)
		err = end_check(cable->end[*side - 'a'], rule);
	if (err)
		kfree(rule);
	else
		rule_add(cable->end[*side - 'a'], rule);
	return err;
}

void wire_impair_show(struct wire_cable *cable, struct seq_file *seq)
{
	const struct wire_impair *rule;
	struct wire_end *end;
	int side;

	for (side = 0; side < 2; side++) {
		end = cable->end[side];
		spin_lock_bh(&end->lock);
		for (rule = end->impair; rule; rule = rule->next)
			seq_printf(seq, "end=%c sport=%llu dport=%llu hits=%llu\n", end->side,
				   rule->sport, rule->dport, rule->hits);
		spin_unlock_bh(&end->lock);
	}
}

/*
 * Frees the rules of an end whose device is gone and that has no frame in
 * flight.
 */
void wire_impair_free(struct wire_end *end)
{
	struct wire_impair *rule, *next;

	for (rule = end->impair; rule; rule = next) {
		next = rule->next;
		kfree(rule);
	}
}
