/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * psp-fuzz: random netlink operations on psp and what hangs below it, valid
 * and not, with frames on their way.  Everything follows from the seed.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/netlink.h>

#define MESSAGE_MAX	32768	/* bytes */
#define PORTS_MAX	8
#define MINORS		12	/* classes are 1:1 to 1:c, but for damaged messages */
#define STRANGERS_MAX	32
#define HANDLE		0x10000	/* of psp at the root */

/* ---- random.c ---- */

struct random {
	uint64_t state;
};

uint64_t random_next(struct random *r);
uint32_t random_below(struct random *r, uint32_t n);	/* 0 .. n - 1 */
bool random_percent(struct random *r, uint32_t percent);
/* Any number of up to @bits bits, the small and the extreme ones often. */
uint64_t random_value(struct random *r, unsigned int bits);

/* ---- message.c ---- */

struct message {
	union {
		struct nlmsghdr head;
		char bytes[MESSAGE_MAX];
	};
	size_t options;		/* where TCA_OPTIONS begins; 0: nowhere */
};

void message_tc(struct message *m, uint16_t type, uint16_t flags, int ifindex,
		uint32_t parent, uint32_t handle);
void message_link(struct message *m, int ifindex, bool up, uint32_t mtu);
void message_put(struct message *m, uint16_t type, const void *data, size_t len);
void message_put_text(struct message *m, uint16_t type, const char *text);
size_t message_nest(struct message *m, uint16_t type);
void message_nest_end(struct message *m, size_t at);

int netlink_open(void);
/*
 * Sends, and takes in what comes back, with `each` called for every message
 * that is no answer to the request itself.  Gives 0 or an errno.
 */
int netlink_ask(int fd, struct message *m,
		void (*each)(const struct nlmsghdr *n, void *arg), void *arg);

/* ---- operate.c ---- */

struct port {
	char name[16];
	int ifindex;
	/*
	 * GSO trains are sent to it too: one that waits whole counts as one, and
	 * as many when it is sent, so nothing is counted there.
	 */
	bool trains;
	bool busy;	/* others send as well: nothing is counted, it may never be empty */
};

/* One random request, made but not sent; false: it is about the link. */
bool operate(struct random *r, const struct port *port, struct message *m);
void operate_link(struct random *r, const struct port *port, struct message *m);

/* ---- mutate.c ---- */

/* Spoils a request in one of many ways; its length stays that of a message. */
void mutate(struct random *r, struct message *m);

/* ---- traffic.c ---- */

bool traffic_open(const struct port *port, int *fd);
/* Sends one frame of class `minor` of psp; gives whether the qdisc had it. */
bool traffic_frame(int fd, struct random *r, uint32_t priority);
/* One GSO train, or anything else that a socket lets through. */
void traffic_wild(int fd, struct random *r, uint32_t priority);
/* A GSO train of a protocol that the kernel cannot cut. */
void traffic_uncut(int fd);

/* ---- account.c ---- */

struct numbers {
	uint64_t sent;		/* frames */
	uint32_t drops;
	uint32_t qlen;
	uint32_t backlog;	/* bytes */
	uint32_t requeues;
};

/* What a dump says of one port. */
struct tree {
	bool psp;		/* at the root, as 1: */
	bool copies;		/* something in it makes copies (netem) */
	struct numbers root;
	uint64_t drops_by_cause;	/* of psp's own; a child drops what it took by itself */
	uint64_t drop_segment;
	struct {
		bool there;
		bool keeps;	/* its child drops nothing that it took */
		uint32_t child;	/* handle */
		struct numbers n;
	} classes[MINORS + 1];
	uint32_t strangers[STRANGERS_MAX];	/* further minors */
	unsigned int stranger_count;
};

bool tree_read(int fd, const struct port *port, struct tree *tree);
bool tree_read_true(int fd, const struct port *port, struct tree *tree);
/*
 * `frames` were given to class `minor` between two readings, and nobody
 * changed anything: each is sent, dropped or waiting.
 */
bool tree_check(const struct tree *before, const struct tree *after,
		unsigned int frames, unsigned int minor, char *why, size_t size);

#endif
