/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * psp-fuzz: performs random netlink operations, valid and invalid, on psp and
 * its children while frames are queued.  The seed determines the whole run.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/netlink.h>

#define MESSAGE_MAX	32768	/* bytes */
#define PORTS_MAX	8
#define MINORS		12	/* classes are 1:1 to 1:c, except in mutated messages */
#define STRANGERS_MAX	32
#define HANDLE		0x10000	/* handle of psp at the root */

/* ---- random.c ---- */

struct random {
	uint64_t state;
};

uint64_t random_next(struct random *r);
uint32_t random_below(struct random *r, uint32_t n);	/* 0 .. n - 1 */
bool random_percent(struct random *r, uint32_t percent);
/* Returns a number of up to @bits bits; small and extreme ones are frequent. */
uint64_t random_value(struct random *r, unsigned int bits);

/* ---- message.c ---- */

struct message {
	union {
		struct nlmsghdr head;
		char bytes[MESSAGE_MAX];
	};
	size_t options;		/* offset of TCA_OPTIONS; 0: none */
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
 * Sends a request and receives the answers; calls `each` for every message that
 * does not acknowledge the request itself.  Returns 0 or an errno.
 */
int netlink_ask(int fd, struct message *m,
		void (*each)(const struct nlmsghdr *n, void *arg), void *arg);

/* ---- operate.c ---- */

struct port {
	char name[16];
	int ifindex;
	uint32_t parent;	/* of psp */
	/*
	 * GSO bursts are sent to it too.  Frames are not counted there: a
	 * waiting burst counts as one frame, but as all its segments when it is
	 * sent.
	 */
	bool bursts;
	bool busy;	/* others send as well: not counted, it may never be empty */
};

/*
 * Builds one random request without sending it.  Returns false if it is about
 * the link.
 */
bool operate(struct random *r, const struct port *port, struct message *m);
void operate_link(struct random *r, const struct port *port, struct message *m);

/* ---- mutate.c ---- */

/*
 * Mutates a request in one of many ways; its length stays valid for a message.
 */
void mutate(struct random *r, struct message *m);

/* ---- traffic.c ---- */

bool traffic_open(const struct port *port, int *fd);
/* Sends one frame of this priority.  Returns true if the qdisc received it. */
bool traffic_frame(int fd, struct random *r, uint32_t priority);
/* Sends one GSO burst, or anything else that a socket accepts. */
void traffic_wild(int fd, struct random *r, uint32_t priority);
/* Sends a GSO burst of a protocol that the kernel cannot segment. */
void traffic_uncut(int fd);

/* ---- account.c ---- */

struct numbers {
	uint64_t sent;		/* frames */
	uint32_t drops;
	uint32_t qlen;
	uint32_t backlog;	/* bytes */
	uint32_t requeues;
};

/* The state of one port, as a dump reports it. */
struct tree {
	bool psp;		/* at the port's parent, as 1: */
	bool copies;		/* something in it makes copies (netem) */
	struct numbers root;
	uint64_t drops_by_cause;	/* psp's own drops, without the children's */
	uint64_t drop_segment;
	struct {
		bool there;
		bool keeps;	/* its child drops no frame that it has accepted */
		uint32_t child;	/* handle */
		uint32_t above;	/* handle of psp, or of the group that it is in */
		uint8_t type;	/* enum tc_psp_type */
		bool has_total;
		struct numbers n;
	} classes[MINORS + 1];
	uint32_t strangers[STRANGERS_MAX];	/* other minors */
	unsigned int stranger_count;
};

bool tree_read(int fd, const struct port *port, struct tree *tree);
bool tree_read_true(int fd, const struct port *port, struct tree *tree);
/*
 * Checks that each of `frames` is sent, dropped or waiting: they were enqueued
 * to class `minor` between the two readings, and nothing else has changed.
 */
bool tree_check(const struct tree *before, const struct tree *after,
		unsigned int frames, unsigned int minor, char *why, size_t size);

#endif
