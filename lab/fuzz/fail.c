// SPDX-License-Identifier: GPL-2.0-only
/*
 * psp-fail DEVICE [shared]: repeats each request of a list and makes its first
 * allocation in the kernel fail, then its second, and so on until the request
 * makes no more allocations. A request that fails must have changed nothing;
 * one that succeeds without the allocation is undone. shared: psp is at queue
 * 8:1 of mq, and its classes are those of the device. Needs
 * CONFIG_FAULT_INJECTION and its fail-nth.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <net/if.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "fuzz.h"
#include "../../uapi/sch_psp.h"

#define NTH		"/proc/thread-self/fail-nth"
#define ALLOCATIONS_MAX	2000	/* per request: none makes so many */
#define ADD		(NLM_F_CREATE | NLM_F_EXCL)
#define QUEUE		0x80001
/* Classes of the group: its memory grows for the last. */
#define MEMBER		4

static struct message message;
static struct port port;
static int netlink, packets, nth;
static bool shared;
static uint32_t member;

static uint32_t parent(void)
{
	return shared ? QUEUE : TC_H_ROOT;
}

static void psp_qdisc(uint16_t flags, uint8_t mode)
{
	uint8_t on = 1;
	size_t nest;

	message_tc(&message, RTM_NEWQDISC, flags, port.ifindex, parent(), HANDLE);
	message_put_text(&message, TCA_KIND, "psp");
	nest = message_nest(&message, TCA_OPTIONS);
	message_put(&message, TCA_PSP_MODE, &mode, sizeof(mode));
	if (shared)
		message_put(&message, TCA_PSP_SHARED, &on, sizeof(on));
	message_nest_end(&message, nest);
}

static void psp_class(uint16_t flags, uint32_t minor, uint64_t rate_bps)
{
	size_t nest;

	message_tc(&message, RTM_NEWTCLASS, flags, port.ifindex, HANDLE, HANDLE | minor);
	message_put_text(&message, TCA_KIND, "psp");
	nest = message_nest(&message, TCA_OPTIONS);
	message_put(&message, TCA_PSP_CLASS_RATE, &rate_bps, sizeof(rate_bps));
	message_nest_end(&message, nest);
}

static void add_qdisc(void) { psp_qdisc(ADD, TC_PSP_MODE_AUTO); }
static void to_auto(void) { psp_qdisc(0, TC_PSP_MODE_AUTO); }
static void to_timer(void) { psp_qdisc(0, TC_PSP_MODE_TIMER); }
static void to_gap(void) { psp_qdisc(0, TC_PSP_MODE_GAP); }
static void add_class(void) { psp_class(ADD, 1, 1000000); }
static void add_another(void) { psp_class(ADD, 2, 1000000); }
static void change_class(void) { psp_class(0, 1, 2000000); }
static void change_class_back(void) { psp_class(0, 1, 1000000); }

static void dynamic_class(void)
{
	uint8_t kind = TC_PSP_TYPE_DYNAMIC;
	size_t nest;

	message_tc(&message, RTM_NEWTCLASS, 0, port.ifindex, HANDLE, HANDLE | 1);
	message_put_text(&message, TCA_KIND, "psp");
	nest = message_nest(&message, TCA_OPTIONS);
	message_put(&message, TCA_PSP_CLASS_TYPE, &kind, sizeof(kind));
	message_nest_end(&message, nest);
}

/* A new class of a type below psp or a group, with one option of 64 bits. */
static void class_of(uint8_t type, uint32_t above, uint32_t minor, uint16_t key, uint64_t value)
{
	size_t nest;

	message_tc(&message, RTM_NEWTCLASS, ADD, port.ifindex, HANDLE | above, HANDLE | minor);
	message_put_text(&message, TCA_KIND, "psp");
	nest = message_nest(&message, TCA_OPTIONS);
	message_put(&message, TCA_PSP_CLASS_TYPE, &type, sizeof(type));
	message_put(&message, key, &value, sizeof(value));
	message_nest_end(&message, nest);
}

static void add_total(void)
{
	class_of(TC_PSP_TYPE_DYNAMIC, 0, 3, TCA_PSP_CLASS_TOTAL, 1000000);
}

static void add_reserve(void)
{
	class_of(TC_PSP_TYPE_RT, 0, 3, TCA_PSP_CLASS_RESERVE, 10000);
}

static void add_group(void)
{
	class_of(TC_PSP_TYPE_GROUP, 0, 3, TCA_PSP_CLASS_RATE, 100000000);
}

static void add_member(void)
{
	class_of(TC_PSP_TYPE_PACED, 3, member, TCA_PSP_CLASS_RATE, 1000000);
}

static void graft(void)
{
	message_tc(&message, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, port.ifindex,
		   HANDLE | 1, 0x110000);
	message_put_text(&message, TCA_KIND, "fq_codel");
}

static void ungraft(void)
{
	message_tc(&message, RTM_DELQDISC, 0, port.ifindex, HANDLE | 1, 0x110000);
}

static void add_filter(void)
{
	struct tcmsg *t = NLMSG_DATA(&message.head);
	uint32_t class = HANDLE | 1;
	size_t nest;

	message_tc(&message, RTM_NEWTFILTER, ADD, port.ifindex, HANDLE, 0);
	t->tcm_info = 1 << 16 | 0x0300;
	message_put_text(&message, TCA_KIND, "matchall");
	nest = message_nest(&message, TCA_OPTIONS);
	message_put(&message, TCA_MATCHALL_CLASSID, &class, sizeof(class));
	message_nest_end(&message, nest);
}

static void longer_frames(void) { message_link(&message, port.ifindex, true, 9000); }
static void usual_frames(void) { message_link(&message, port.ifindex, true, 1500); }

static void delete_filter(void)
{
	struct tcmsg *t = NLMSG_DATA(&message.head);

	message_tc(&message, RTM_DELTFILTER, 0, port.ifindex, HANDLE, 0);
	t->tcm_info = 1 << 16 | 0x0300;
}

static void delete_minor(uint32_t minor)
{
	message_tc(&message, RTM_DELTCLASS, 0, port.ifindex, HANDLE, HANDLE | minor);
}

static void delete_class(void) { delete_minor(1); }
static void delete_another(void) { delete_minor(2); }
static void delete_third(void) { delete_minor(3); }
static void delete_member(void) { delete_minor(member); }

static void delete_qdisc(void)
{
	message_tc(&message, RTM_DELQDISC, 0, port.ifindex, parent(), HANDLE);
}

/*
 * The requests, each with the one that undoes it. Each is possible once the one
 * before it has been done.
 */
static const struct request {
	const char *name;
	void (*make)(void);
	void (*undo)(void);
} requests[] = {
	{ "qdisc add", add_qdisc, delete_qdisc },
	{ "class add", add_class, delete_class },
	{ "a second class", add_another, delete_another },
	{ "class change", change_class, change_class_back },
	{ "class change to dynamic", dynamic_class, change_class },
	{ "class change back", change_class, dynamic_class },
	{ "child replace", graft, ungraft },
	{ "child delete", ungraft, graft },
	{ "filter add", add_filter, delete_filter },
	{ "change to timer", to_timer, to_auto },
	{ "change to gap", to_gap, to_timer },
	{ "MTU 9000", longer_frames, usual_frames },
	{ "MTU 1500", usual_frames, longer_frames },
	{ "filter delete", delete_filter, add_filter },
	{ "class with a total add", add_total, delete_third },
	{ "class with a total delete", delete_third, add_total },
	{ "class with a reserve add", add_reserve, delete_third },
	{ "class with a reserve delete", delete_third, add_reserve },
	{ "group add", add_group, delete_third },
	{ "class of the group add", add_member, delete_member },
	{ "class of the group delete", delete_member, add_member },
	{ "class delete", delete_class, add_class },
	{ "qdisc delete", delete_qdisc, add_qdisc },
};

static void set_nth(unsigned int n)
{
	char text[16];
	int size = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(nth, text, size, 0) != size) {
		perror(NTH);
		exit(2);
	}
}

/* Returns how many allocations remain until one fails; 0: one has failed. */
static unsigned int get_nth(void)
{
	char text[16] = "";

	if (pread(nth, text, sizeof(text) - 1, 0) < 0)
		perror(NTH);
	return strtoul(text, NULL, 10);
}

static bool same_shape(const struct tree *a, const struct tree *b)
{
	if (a->psp != b->psp)
		return false;
	for (unsigned int i = 1; i <= MINORS; i++)
		if (a->classes[i].there != b->classes[i].there)
			return false;
	return true;
}

/*
 * Makes a request whose n-th allocation fails.  A request that succeeds without
 * it is undone, so that the next one starts from the same state.  Returns 1 if
 * the request makes fewer than n allocations and is done, a negative number on
 * a fault.
 */
static int try_nth(const struct request *request, unsigned int n)
{
	static struct tree before, after;
	unsigned int left;
	int err;

	if (!tree_read(netlink, &port, &before)) {
		printf("FAILED %s: what there is cannot be read\n", request->name);
		return -1;
	}
	request->make();
	set_nth(n);
	err = netlink_ask(netlink, &message, NULL, NULL);
	left = get_nth();
	set_nth(0);
	if (left) {
		if (err)
			printf("FAILED %s: %s\n", request->name, strerror(err));
		return err ? -1 : 1;
	}
	if (err) {
		if (tree_read(netlink, &port, &after) && same_shape(&before, &after))
			return 0;
		printf("FAILED %s: allocation %u failed, %s, and yet it was done\n",
		       request->name, n, strerror(err));
		return -1;
	}
	request->undo();
	err = netlink_ask(netlink, &message, NULL, NULL);
	if (err)
		printf("FAILED %s: allocation %u failed; to take it back: %s\n",
		       request->name, n, strerror(err));
	return -err;
}

static bool try_request(const struct request *request)
{
	for (unsigned int n = 1; n < ALLOCATIONS_MAX; n++) {
		int result = try_nth(request, n);

		if (result < 0)
			return false;
		if (result) {
			printf("# %s: %u allocations failed, one after the other\n",
			       request->name, n - 1);
			return true;
		}
	}
	printf("FAILED %s: more than %d allocations\n", request->name, ALLOCATIONS_MAX);
	return false;
}

/*
 * Sends frames and bursts while allocations fail: a frame without memory must
 * be dropped and counted, or be sent later.
 */
static void try_traffic(void)
{
	struct random r = { .state = 1 };

	for (unsigned int n = 1; n < 60; n++) {
		for (unsigned int i = 0; i < 5; i++) {
			set_nth(n);
			traffic_wild(packets, &r, HANDLE | 1);
			set_nth(n);
			traffic_frame(packets, &r, HANDLE | 1);
			set_nth(n);
			traffic_frame(packets, &r, HANDLE | MEMBER);
			set_nth(0);
		}
	}
}

int main(int argc, char **argv)
{
	nth = open(NTH, O_RDWR | O_CLOEXEC);
	netlink = netlink_open();
	shared = argc == 3 && !strcmp(argv[2], "shared");
	if ((argc != 2 && !shared) || nth < 0 || netlink < 0) {
		fprintf(stderr, "usage: psp-fail DEVICE [shared], on a kernel with %s\n", NTH);
		return 2;
	}
	snprintf(port.name, sizeof(port.name), "%s", argv[1]);
	port.ifindex = if_nametoindex(port.name);
	port.parent = parent();
	if (!port.ifindex || !traffic_open(&port, &packets)) {
		perror(argv[1]);
		return 2;
	}
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		const struct request *request = &requests[i];
		uint32_t last = request->make == add_member ? MINORS : MEMBER;

		/* Gap frames and periods are those of one queue. */
		if (shared && (request->make == to_gap || request->make == add_reserve ||
			       request->undo == add_reserve))
			continue;
		for (member = MEMBER; member <= last; member++)
			if (!try_request(request))
				return 1;
		member = MEMBER;
		if (request->make == add_class || request->make == to_gap ||
		    request->make == add_member)
			try_traffic();
	}
	return 0;
}
