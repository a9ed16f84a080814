// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks that each frame that arrived is sent, dropped or waiting, per qdisc
 * and class.
 */
#include <stdio.h>
#include <string.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "fuzz.h"
#include "../../uapi/sch_psp.h"

/* Every second reading may be inconsistent, see tree_read_true(). */
#define READINGS	12

struct reading {
	const struct port *port;
	struct tree *tree;
	uint32_t fifos[64];	/* handles of FIFOs */
	unsigned int fifo_count;
};

static const struct nlattr *find(const void *from, size_t size, uint16_t type)
{
	const char *at = from, *end = at + size;

	while (end - at >= NLA_HDRLEN) {
		const struct nlattr *a = (const void *)at;

		if (a->nla_len < NLA_HDRLEN || a->nla_len > end - at)
			return NULL;
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
		at += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static const void *content(const struct nlattr *a)
{
	return (const char *)a + NLA_HDRLEN;
}

static void read_numbers(const struct nlattr *stats, struct numbers *n)
{
	size_t size = stats->nla_len - NLA_HDRLEN;
	const struct nlattr *basic = find(content(stats), size, TCA_STATS_BASIC);
	const struct nlattr *queue = find(content(stats), size, TCA_STATS_QUEUE);
	const struct nlattr *wide = find(content(stats), size, TCA_STATS_PKT64);
	struct gnet_stats_queue q = { 0 };
	uint32_t packets = 0;

	/* u64 bytes, u32 packets; aligned to four. */
	if (basic)
		memcpy(&packets, (const char *)content(basic) + 8, sizeof(packets));
	n->sent = packets;
	if (wide)
		memcpy(&n->sent, content(wide), sizeof(n->sent));
	if (queue)
		memcpy(&q, content(queue), sizeof(q));
	n->drops = q.drops;
	n->qlen = q.qlen;
	n->backlog = q.backlog;
	n->requeues = q.requeues;
}

static void read_causes(const struct nlattr *stats, struct tree *tree)
{
	const struct nlattr *app = find(content(stats), stats->nla_len - NLA_HDRLEN,
					TCA_STATS_APP);
	struct tc_psp_qdisc_stats said = { 0 };

	if (!app || app->nla_len < NLA_HDRLEN + sizeof(said))
		return;
	memcpy(&said, content(app), sizeof(said));
	tree->drop_segment = said.drop_segment;
	tree->drops_by_cause = said.drop_filter + said.drop_child + said.drop_segment +
			       said.drop_long + said.drop_late + said.drop_flow +
			       said.drop_limit + said.drop_horizon + said.drop_evicted +
			       said.drop_txtime_invalid + said.drop_txtime_missed;
}

/*
 * Returns the attributes of a message about this port; NULL if it is about
 * another.
 */
static const void *attributes(const struct nlmsghdr *n, const struct reading *reading,
			      const struct tcmsg **t, size_t *size)
{
	*t = NLMSG_DATA(n);
	if (n->nlmsg_len < NLMSG_LENGTH(sizeof(**t)) ||
	    (*t)->tcm_ifindex != reading->port->ifindex)
		return NULL;
	*size = n->nlmsg_len - NLMSG_LENGTH(sizeof(**t));
	return (const char *)*t + NLMSG_ALIGN(sizeof(**t));
}

static void take_qdisc(const struct nlmsghdr *n, void *arg)
{
	const struct nlattr *kind, *stats;
	struct reading *reading = arg;
	struct tree *tree = reading->tree;
	const struct tcmsg *t;
	const char *name;
	size_t size;
	const void *from = attributes(n, reading, &t, &size);

	if (!from || n->nlmsg_type != RTM_NEWQDISC)
		return;
	kind = find(from, size, TCA_KIND);
	stats = find(from, size, TCA_STATS2);
	if (!kind || !stats)
		return;
	name = content(kind);
	if (!strcmp(name, "netem"))
		tree->copies = true;
	if ((!strcmp(name, "pfifo") || !strcmp(name, "bfifo")) &&
	    reading->fifo_count < sizeof(reading->fifos) / sizeof(*reading->fifos))
		reading->fifos[reading->fifo_count++] = t->tcm_handle;
	if (t->tcm_parent == reading->port->parent && t->tcm_handle == HANDLE &&
	    !strcmp(name, "psp")) {
		tree->psp = true;
		read_numbers(stats, &tree->root);
		read_causes(stats, tree);
	}
}

/* Reads which type a class has, and whether that has a total. */
static void read_type(const struct nlattr *options, struct tree *tree, uint32_t minor)
{
	const struct nlattr *type;

	if (!options)
		return;
	type = find(content(options), options->nla_len - NLA_HDRLEN, TCA_PSP_CLASS_TYPE);
	if (type)
		tree->classes[minor].type = *(const uint8_t *)content(type);
	tree->classes[minor].has_total =
		find(content(options), options->nla_len - NLA_HDRLEN, TCA_PSP_CLASS_TOTAL);
}

static void take_class(const struct nlmsghdr *n, void *arg)
{
	struct reading *reading = arg;
	const struct nlattr *stats;
	const struct tcmsg *t;
	uint32_t minor;
	size_t size;
	const void *from = attributes(n, reading, &t, &size);

	if (!from || n->nlmsg_type != RTM_NEWTCLASS || TC_H_MAJ(t->tcm_handle) != HANDLE)
		return;
	minor = TC_H_MIN(t->tcm_handle);
	stats = find(from, size, TCA_STATS2);
	if (!stats)
		return;
	if (minor > MINORS) {
		if (reading->tree->stranger_count < STRANGERS_MAX)
			reading->tree->strangers[reading->tree->stranger_count++] = minor;
		return;
	}
	reading->tree->classes[minor].there = true;
	reading->tree->classes[minor].child = t->tcm_info;
	reading->tree->classes[minor].above = t->tcm_parent == TC_H_ROOT ? HANDLE :
									   t->tcm_parent;
	read_type(find(from, size, TCA_OPTIONS), reading->tree, minor);
	/* Without a child the class has its own FIFO. */
	reading->tree->classes[minor].keeps = !t->tcm_info;
	read_numbers(stats, &reading->tree->classes[minor].n);
}

bool tree_read(int fd, const struct port *port, struct tree *tree)
{
	struct reading reading = { .port = port, .tree = tree };
	static struct message m;

	memset(tree, 0, sizeof(*tree));
	message_tc(&m, RTM_GETQDISC, NLM_F_DUMP, port->ifindex, 0, 0);
	/* The dump includes children that were created with their parent. */
	message_put(&m, TCA_DUMP_INVISIBLE, NULL, 0);
	if (netlink_ask(fd, &m, take_qdisc, &reading))
		return false;
	message_tc(&m, RTM_GETTCLASS, NLM_F_DUMP, port->ifindex, 0, 0);
	if (netlink_ask(fd, &m, take_class, &reading))
		return false;
	for (unsigned int i = 1; i <= MINORS; i++)
		for (unsigned int j = 0; j < reading.fifo_count; j++)
			if (tree->classes[i].child == reading.fifos[j])
				tree->classes[i].keeps = true;
	return true;
}

static uint32_t gone(const struct numbers *before, const struct numbers *after)
{
	return after->sent - before->sent + (after->drops - before->drops) +
	       (after->qlen - before->qlen);
}

/*
 * Reads a consistent tree. The kernel reads first the backlog of a qdisc, then
 * psp's own statistics, and last what the qdisc has sent and dropped: a frame
 * that leaves meanwhile is counted twice. While nothing arrives, the smallest
 * of several readings is therefore consistent, and so is any reading of an
 * empty qdisc.
 */
bool tree_read_true(int fd, const struct port *port, struct tree *tree)
{
	static struct tree again;

	if (!tree_read(fd, port, tree))
		return false;
	for (int i = 1; i < READINGS && tree->root.qlen; i++) {
		if (!tree_read(fd, port, &again))
			return false;
		if ((int32_t)gone(&tree->root, &again.root) <= 0)
			*tree = again;
	}
	return true;
}

/*
 * Checks that each frame that psp dropped has one cause, and that each drop has
 * one if no child adds to the drops.
 */
static bool causes_check(const struct tree *before, const struct tree *after, char *why,
			 size_t size)
{
	uint64_t caused = after->drops_by_cause - before->drops_by_cause;
	uint32_t dropped = after->root.drops - before->root.drops;
	bool keep = !after->copies;

	for (unsigned int i = 1; i <= MINORS; i++)
		keep &= !after->classes[i].there || after->classes[i].keeps;
	if (caused == dropped || (caused < dropped && (!keep || after->stranger_count)))
		return true;
	snprintf(why, size, "qdisc: %u frames dropped, %llu by a cause", dropped,
		 (unsigned long long)caused);
	return false;
}

bool tree_check(const struct tree *before, const struct tree *after,
		unsigned int frames, unsigned int minor, char *why, size_t size)
{
	uint32_t counted = gone(&before->root, &after->root);
	uint32_t waiting = 0;

	for (unsigned int i = 1; i <= MINORS; i++) {
		uint32_t expected = i == minor ? frames : 0;
		uint32_t found = gone(&before->classes[i].n, &after->classes[i].n);

		/* A group has what waits in its classes, and sends what they send. */
		if (after->classes[i].above == HANDLE)
			waiting += after->classes[i].n.qlen;
		if (!after->classes[i].there || !after->classes[i].keeps ||
		    after->classes[i].type == TC_PSP_TYPE_GROUP ||
		    after->copies || found == expected)
			continue;
		snprintf(why, size, "class 1:%x: %u frames came, %u are sent, dropped or waiting",
			 i, expected, found);
		return false;
	}
	/* A frame that the device returned counts as sent and waits again. */
	if (!after->copies && !after->root.requeues && counted != frames) {
		snprintf(why, size, "qdisc: %u frames came, %u are sent, dropped or waiting",
			 frames, counted);
		return false;
	}
	/*
	 * More frames than the classes' may wait below the root: some have no
	 * class.
	 */
	if (waiting > after->root.qlen || after->root.qlen > 1 << 24 ||
	    !after->root.qlen != !after->root.backlog) {
		snprintf(why, size, "qdisc: qlen %u, backlog %u, classes %u", after->root.qlen,
			 after->root.backlog, waiting);
		return false;
	}
	return causes_check(before, after, why, size);
}
