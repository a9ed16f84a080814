// SPDX-License-Identifier: GPL-2.0-only
/*
 * psp-fuzz SEED OPERATIONS DEVICE[:bursts|:busy]...: performs random operations
 * on the devices' psp while frames are queued.  With `:bursts` it also sends
 * GSO bursts; with `:busy` other senders use the device too.  The first device
 * is a wire of 1 Gbit/s.
 *
 * Every COUNT_EVERY operations it stops the traffic and counts the frames;
 * every RENEW_EVERY operations it drains a port and sets it up anew.  Exits
 * with 0, or reports the fault and its operation and exits with 1.  The same
 * arguments repeat the same run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <net/if.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "fuzz.h"
#include "../../uapi/sch_psp.h"

#define COUNT_EVERY	50	/* operations */
#define RENEW_EVERY	2000	/* operations */
#define BURST_MAX	40	/* frames, counted */
#define DRAIN_MS	2000

struct fuzz {
	struct random random;
	struct port ports[PORTS_MAX];
	int sockets[PORTS_MAX];
	unsigned int count;
	int netlink;
	int log;		/* /dev/kmsg: dates the kernel's complaints by operation */
	unsigned long operations, taken, refused, counted, frames, drained;
};

static struct message message;

static void note(struct fuzz *f, const char *what, unsigned long operation)
{
	char text[80];
	int n = snprintf(text, sizeof(text), "psp-fuzz: %s %lu\n", what, operation);

	if (f->log >= 0 && write(f->log, text, n) < 0)
		f->log = -1;
}

static void pause_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

static bool failed(unsigned long operation, const struct port *port, const char *why)
{
	printf("FAILED at operation %lu on %s: %s\n", operation, port->name, why);
	return false;
}

/* ---- setting up a port ---- */

static void remove_root(struct fuzz *f, const struct port *port)
{
	message_tc(&message, RTM_DELQDISC, 0, port->ifindex, TC_H_ROOT, 0);
	netlink_ask(f->netlink, &message, NULL, NULL);
}

static void begin(struct fuzz *f, const struct port *port)
{
	uint32_t first = 1;
	size_t nest;

	remove_root(f, port);
	message_tc(&message, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, port->ifindex,
		   TC_H_ROOT, HANDLE);
	message_put_text(&message, TCA_KIND, "psp");
	nest = message_nest(&message, TCA_OPTIONS);
	message_put(&message, TCA_PSP_DEFAULT, &first, sizeof(first));
	message_nest_end(&message, nest);
	netlink_ask(f->netlink, &message, NULL, NULL);
}

/* ---- counting ---- */

/*
 * Sends some frames to one existing class, and checks the counters before and
 * after.
 */
static bool count(struct fuzz *f, unsigned int p, unsigned long operation)
{
	const struct port *port = &f->ports[p];
	unsigned int first = random_below(&f->random, MINORS), minor = 0;
	unsigned int frames = 1 + random_below(&f->random, BURST_MAX), given = 0;
	static struct tree before, after;
	char why[160];

	message_link(&message, port->ifindex, true, 1500);
	netlink_ask(f->netlink, &message, NULL, NULL);
	if (!tree_read_true(f->netlink, port, &before))
		return failed(operation, port, "no dump");
	for (unsigned int i = 0; i < MINORS && !minor; i++)
		if (before.classes[1 + (first + i) % MINORS].there)
			minor = 1 + (first + i) % MINORS;
	if (!before.psp)
		begin(f, port);
	if (!before.psp || !minor)
		return true;
	for (unsigned int i = 0; i < frames; i++)
		given += traffic_frame(f->sockets[p], &f->random, HANDLE | minor);
	if (random_percent(&f->random, 50))
		pause_ms(1);
	if (!tree_read_true(f->netlink, port, &after))
		return failed(operation, port, "no dump");
	f->counted++;
	f->frames += given;
	if (!tree_check(&before, &after, given, minor, why, sizeof(why)))
		return failed(operation, port, why);
	return true;
}

/* ---- draining a port ---- */

/* Asks for a class of a type, with a rate unless that is 0.  Returns what the kernel does. */
static int ask_class(struct fuzz *f, const struct port *port, uint32_t above, uint32_t minor,
		     uint8_t type, uint64_t rate_bps)
{
	size_t nest;

	message_tc(&message, RTM_NEWTCLASS, 0, port->ifindex, above, HANDLE | minor);
	message_put_text(&message, TCA_KIND, "psp");
	nest = message_nest(&message, TCA_OPTIONS);
	message_put(&message, TCA_PSP_CLASS_TYPE, &type, sizeof(type));
	if (rate_bps) {
		message_put(&message, TCA_PSP_CLASS_RATE, &rate_bps, sizeof(rate_bps));
		message_put(&message, TCA_PSP_CLASS_CEIL, &rate_bps, sizeof(rate_bps));
	}
	if (type == TC_PSP_TYPE_DYNAMIC)
		message_put(&message, TCA_PSP_CLASS_TOTAL, &rate_bps, sizeof(rate_bps));
	message_nest_end(&message, nest);
	return netlink_ask(f->netlink, &message, NULL, NULL);
}

/*
 * Removes a class's child and makes it a normal class, so that all waiting
 * frames are sent at line rate.  What owns a group stays what it is, and gets the
 * highest rate that the line has room for.
 */
static void let_go(struct fuzz *f, const struct port *port, uint32_t minor, uint32_t child,
		   uint32_t above, uint8_t owns)
{
	uint64_t rate_bps = 1000000000;

	message_tc(&message, RTM_DELQDISC, 0, port->ifindex, HANDLE | minor, child);
	netlink_ask(f->netlink, &message, NULL, NULL);
	if (!owns) {
		ask_class(f, port, above, minor, TC_PSP_TYPE_NORMAL, 0);
		return;
	}
	while (rate_bps >= 10000 && ask_class(f, port, above, minor, owns, rate_bps))
		rate_bps /= 10;
}

/* Returns the type of a class that owns a group, else 0. */
static uint8_t owner_type(const struct tree *tree, unsigned int minor)
{
	return tree->classes[minor].type == TC_PSP_TYPE_GROUP ? TC_PSP_TYPE_GROUP :
	       tree->classes[minor].has_total ? TC_PSP_TYPE_DYNAMIC : 0;
}

static bool drain(struct fuzz *f, const struct port *port, unsigned long operation)
{
	static struct tree tree;
	unsigned int waited = 0;
	char why[80];

	if (port->busy)
		return true;
	message_link(&message, port->ifindex, true, 1500);
	netlink_ask(f->netlink, &message, NULL, NULL);
	if (!tree_read(f->netlink, port, &tree))
		return failed(operation, port, "no dump");
	if (!tree.psp)
		return true;
	for (unsigned int i = 1; i <= MINORS; i++)
		if (tree.classes[i].there)
			let_go(f, port, i, tree.classes[i].child, tree.classes[i].above,
			       owner_type(&tree, i));
	for (unsigned int i = 0; i < tree.stranger_count; i++)
		let_go(f, port, tree.strangers[i], 0, HANDLE, 0);
	f->drained++;
	for (;; waited += 20) {
		uint32_t left;

		if (!tree_read(f->netlink, port, &tree))
			return failed(operation, port, "no dump");
		left = tree.root.qlen | tree.root.backlog;
		for (unsigned int i = 1; i <= MINORS; i++)
			left |= tree.classes[i].n.qlen | tree.classes[i].n.backlog;
		if (!left)
			return true;
		if (waited > DRAIN_MS)
			break;
		pause_ms(20);
	}
	snprintf(why, sizeof(why), "not drained: qlen %u, backlog %u", tree.root.qlen,
		 tree.root.backlog);
	return failed(operation, port, why);
}

/* ---- the run ---- */

/*
 * Sends a GSO burst that cannot be segmented, which no other test does.  On a
 * slow wire psp tries to segment it.
 */
static bool uncut(struct fuzz *f)
{
	const struct port *port = &f->ports[0];
	static struct tree before, after;
	uint64_t counted;
	char why[80];

	if (!tree_read(f->netlink, port, &before))
		return failed(0, port, "no dump");
	traffic_uncut(f->sockets[0]);
	if (!tree_read(f->netlink, port, &after))
		return failed(0, port, "no dump");
	counted = after.drop_segment - before.drop_segment;
	if (counted == 1 && after.root.drops - before.root.drops == 1 && !after.root.qlen)
		return true;
	snprintf(why, sizeof(why), "a burst that cannot be cut: counted %llu times",
		 (unsigned long long)counted);
	return failed(0, port, why);
}

static void one(struct fuzz *f, unsigned int p)
{
	const struct port *port = &f->ports[p];
	int err;

	if (!operate(&f->random, port, &message))
		operate_link(&f->random, port, &message);
	else if (random_percent(&f->random, 25))
		mutate(&f->random, &message);
	err = netlink_ask(f->netlink, &message, NULL, NULL);
	f->taken += !err;
	f->refused += !!err;
}

static void traffic(struct fuzz *f, unsigned int p)
{
	for (uint32_t n = random_below(&f->random, 4); n; n--) {
		uint32_t priority = random_percent(&f->random, 80)
			? HANDLE | random_below(&f->random, MINORS + 3) : 0;

		if (f->ports[p].bursts && random_percent(&f->random, 10))
			traffic_wild(f->sockets[p], &f->random, priority);
		else
			traffic_frame(f->sockets[p], &f->random, priority);
	}
}

static bool run(struct fuzz *f)
{
	for (unsigned long i = 1; i <= f->operations; i++) {
		unsigned int p = random_below(&f->random, f->count);

		one(f, p);
		traffic(f, p);
		if (i % COUNT_EVERY == 0 && !f->ports[p].bursts && !count(f, p, i))
			return false;
		if (i % RENEW_EVERY == 0) {
			note(f, "operation", i);
			p = i / RENEW_EVERY % f->count;
			if (!drain(f, &f->ports[p], i))
				return false;
			begin(f, &f->ports[p]);
		}
	}
	for (unsigned int p = 0; p < f->count; p++) {
		if (!drain(f, &f->ports[p], f->operations))
			return false;
		remove_root(f, &f->ports[p]);
	}
	return true;
}

static bool open_port(struct fuzz *f, const char *name)
{
	struct port *port = &f->ports[f->count];
	const char *how = strchr(name, ':');

	if (f->count == PORTS_MAX)
		return false;
	snprintf(port->name, sizeof(port->name), "%.*s", how ? (int)(how - name) : 15, name);
	port->busy = how && !strcmp(how, ":busy");
	port->bursts = how && (port->busy || !strcmp(how, ":bursts"));
	port->ifindex = if_nametoindex(port->name);
	port->parent = TC_H_ROOT;
	if (!port->ifindex || !traffic_open(port, &f->sockets[f->count]))
		return false;
	f->count++;
	return true;
}

int main(int argc, char **argv)
{
	static struct fuzz f;
	bool ok;

	if (argc < 4) {
		fprintf(stderr, "usage: psp-fuzz SEED OPERATIONS DEVICE[:bursts|:busy]...\n");
		return 2;
	}
	f.random.state = strtoull(argv[1], NULL, 0);
	f.operations = strtoul(argv[2], NULL, 0);
	f.log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	f.netlink = netlink_open();
	for (int i = 3; i < argc; i++) {
		if (f.netlink < 0 || !open_port(&f, argv[i])) {
			fprintf(stderr, "psp-fuzz: %s: %s\n", argv[i], strerror(errno));
			return 2;
		}
	}
	for (unsigned int p = 0; p < f.count; p++)
		begin(&f, &f.ports[p]);
	ok = uncut(&f) && run(&f);
	printf("seed %s: %lu operations, %lu taken, %lu refused; %lu frames counted %lu times; drained %lu times\n",
	       argv[1], f.operations, f.taken, f.refused, f.frames, f.counted, f.drained);
	return !ok;
}
