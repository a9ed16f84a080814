/* SPDX-License-Identifier: GPL-2.0-only */
/* Of the kernel's lists, what headers tested outside of it use. */
#ifndef TEST_LINUX_LIST_H
#define TEST_LINUX_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t u32;

struct list_head {
	struct list_head *next, *prev;
};

#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))
#define list_first_entry(list, type, member) \
	container_of((list)->next, type, member)

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_add_tail(struct list_head *node, struct list_head *list)
{
	node->prev = list->prev;
	node->next = list;
	list->prev->next = node;
	list->prev = node;
}

static inline void list_del(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

static inline void list_move_tail(struct list_head *node, struct list_head *list)
{
	list_del(node);
	list_add_tail(node, list);
}

#endif
