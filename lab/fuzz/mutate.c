// SPDX-License-Identifier: GPL-2.0-only
/* Mutates requests into ones that no correct program sends. */
#include <string.h>
#include <linux/rtnetlink.h>

#include "fuzz.h"

/*
 * Returns a random attribute of the message, at any depth, or NULL if it has
 * none.
 */
static struct nlattr *some_attribute(struct random *r, struct message *m)
{
	size_t at = NLMSG_LENGTH(sizeof(struct tcmsg));
	struct nlattr *found = NULL;
	unsigned int seen = 0;

	while (at + NLA_HDRLEN <= m->head.nlmsg_len) {
		struct nlattr *a = (struct nlattr *)(m->bytes + at);

		if (!random_below(r, ++seen))
			found = a;
		/* Descend into a nest; skip any other attribute. */
		if (a->nla_type & NLA_F_NESTED || a->nla_len < NLA_HDRLEN)
			at += NLA_HDRLEN;
		else
			at += NLA_ALIGN(a->nla_len);
	}
	return found;
}

/* Sets a length that is wrong for the attribute's type or for its data. */
static void spoil_length(struct random *r, struct nlattr *a)
{
	switch (random_below(r, 4)) {
	case 0:
		a->nla_len = NLA_HDRLEN;
		break;
	case 1:
		a->nla_len += random_below(r, 9) - 4;
		break;
	case 2:
		a->nla_len = random_below(r, NLA_HDRLEN);
		break;
	default:
		a->nla_len = random_value(r, 16);
	}
}

static void spoil_type(struct random *r, struct nlattr *a)
{
	switch (random_below(r, 3)) {
	case 0:
		a->nla_type ^= NLA_F_NESTED;
		break;
	case 1:
		a->nla_type = random_below(r, 24) | (a->nla_type & NLA_F_NESTED);
		break;
	default:
		a->nla_type = random_value(r, 16);
	}
}

static void spoil_bytes(struct random *r, struct message *m)
{
	size_t begin = NLMSG_LENGTH(sizeof(struct tcmsg));
	uint32_t room = m->head.nlmsg_len - begin;

	for (uint32_t i = random_below(r, 8); room && i < 8; i++)
		m->bytes[begin + random_below(r, room)] = random_next(r);
}

/* Repeats an attribute, once or until the message is full. */
static void repeat(struct random *r, struct message *m, const struct nlattr *a)
{
	static char copy[MESSAGE_MAX];
	const char *end = m->bytes + m->head.nlmsg_len;
	uint32_t times = random_percent(r, 10) ? 2000 : 1 + random_below(r, 3);
	struct nlattr *options = NULL;
	size_t len, before;

	if (a->nla_len < NLA_HDRLEN || (const char *)a + a->nla_len > end)
		return;
	len = a->nla_len - NLA_HDRLEN;
	memcpy(copy, (const char *)a + NLA_HDRLEN, len);
	if (m->options && random_percent(r, 80))
		options = (struct nlattr *)(m->bytes + m->options);
	before = m->head.nlmsg_len;
	for (uint16_t type = a->nla_type; times; times--)
		message_put(m, type, copy, len);
	/* The options are mostly last: the copies become a part of them. */
	if (options && m->options + options->nla_len == before)
		options->nla_len += m->head.nlmsg_len - before;
}

void mutate(struct random *r, struct message *m)
{
	struct tcmsg *t = NLMSG_DATA(&m->head);
	struct nlattr *a = some_attribute(r, m);
	static char junk[4096];

	switch (random_below(r, a ? 8 : 4)) {
	case 0:
		t->tcm_parent = random_percent(r, 50) ? HANDLE | random_below(r, 20)
						      : random_value(r, 32);
		break;
	case 1:
		t->tcm_handle = random_percent(r, 50) ? HANDLE | random_below(r, 20)
						      : random_value(r, 32);
		break;
	case 2:
		m->head.nlmsg_flags ^= 1 << (8 + random_below(r, 4));
		break;
	case 3:
		for (size_t i = 0; i < sizeof(junk); i++)
			junk[i] = random_next(r);
		message_put(m, random_percent(r, 50) ? TCA_OPTIONS : random_below(r, 20),
			    junk, random_below(r, random_percent(r, 50) ? 40 : sizeof(junk)));
		break;
	case 4:
		spoil_length(r, a);
		break;
	case 5:
		spoil_type(r, a);
		break;
	case 6:
		spoil_bytes(r, m);
		break;
	default:
		repeat(r, m, a);
	}
	/*
	 * Truncate, but keep the header, without which the kernel does not
	 * answer.
	 */
	if (random_percent(r, 10))
		m->head.nlmsg_len -= random_below(r, m->head.nlmsg_len - NLMSG_HDRLEN + 1);
}
