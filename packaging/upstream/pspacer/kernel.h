/* SPDX-License-Identifier: GPL-2.0-only */
/* What the scheduling part of the series needs of the kernel, in user space: no faster. */
#ifndef SERIES_KERNEL_H
#define SERIES_KERNEL_H

#include <stddef.h>

#define container_of(p, type, member)	((type *)((char *)(p) - offsetof(type, member)))
#define WRITE_ONCE(place, to)		((place) = (to))
#define BIT(n)				(1ul << (n))
#define BIT_ULL(n)			(1ull << (n))
#define U64_MAX				(~0ull)
#define __rcu
#define min(a, b)			((a) < (b) ? (a) : (b))
#define max(a, b)			((a) > (b) ? (a) : (b))
#define div64_u64_rem			pace_div_rem
#define div64_u64(a, b)			((a) / (b))
#define mul_u64_u64_div_u64		pace_mul_div
#define ETH_ZLEN			60

/* Trees are sorted lists here. */
struct rb_node {
	struct rb_node *next;
};

struct rb_root_cached {
	struct rb_node *first;
};

#define rb_entry(p, type, member)	container_of(p, type, member)
#define rb_entry_safe(p, type, member)	((p) ? container_of(p, type, member) : NULL)
#define rb_first_cached(tree)		((tree)->first)

static inline void rb_add_cached(struct rb_node *node, struct rb_root_cached *tree,
				 bool (*less)(struct rb_node *, const struct rb_node *))
{
	struct rb_node **at = &tree->first;

	while (*at && !less(node, *at))
		at = &(*at)->next;
	node->next = *at;
	*at = node;
}

static inline void rb_erase_cached(struct rb_node *node, struct rb_root_cached *tree)
{
	struct rb_node **at = &tree->first;

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
}

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline void list_del_init(struct list_head *at)
{
	at->next->prev = at->prev;
	at->prev->next = at->next;
	INIT_LIST_HEAD(at);
}

static inline void list_add_tail(struct list_head *at, struct list_head *list)
{
	at->prev = list->prev;
	at->next = list;
	list->prev->next = at;
	list->prev = at;
}

static inline void list_move_tail(struct list_head *at, struct list_head *list)
{
	list_del_init(at);
	list_add_tail(at, list);
}

#define list_empty(list)			((list)->next == (list))
#define list_first_entry(list, type, member)	container_of((list)->next, type, member)

/* Of the qdisc, and unused. */
struct Qdisc_class_common {
	u32 classid;
};

struct Qdisc_class_hash {
	u32 size;
};

struct qdisc_watchdog {
	u32 unused;
};

struct qdisc_skb_head {
	u32 qlen;
};

struct gnet_stats_basic_sync {
	u64 bytes;
};

struct sk_buff;

struct gnet_stats_queue {
	u32 backlog;
};

#endif
