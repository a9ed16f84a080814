// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose flows they are, and who gives way where there is no room.
 *
 * A user is a uid: any process may open as many sockets as it likes, but not
 * as somebody else; subordinate uids count as users of their own.  Nothing is shared out in advance.  Where a bound is
 * reached, one of the users who have most gives way: so of N flows (or frames)
 * among U users, nobody who has N / 2U or less loses one to another (rank.h).
 */
#include <linux/hash.h>
#include <linux/slab.h>

#include "psp.h"

/* Flows of one user that are compared at a time. */
#define PSP_USER_LOOK		8

static struct kmem_cache *psp_user_cache;

int psp_users_init(void)
{
	psp_user_cache = KMEM_CACHE(psp_user, 0);
	return psp_user_cache ? 0 : -ENOMEM;
}

void psp_users_exit(void)
{
	kmem_cache_destroy(psp_user_cache);
}

static struct hlist_head *psp_user_bucket(struct psp_flows *flows, kuid_t uid)
{
	return &flows->bucket[hash_32(__kuid_val(uid), flows->bits)].users;
}

/* The user with one flow more, that is to be; NULL: no memory. */
struct psp_user *psp_user_hold(struct psp_flows *flows, kuid_t uid)
{
	struct hlist_head *bucket = psp_user_bucket(flows, uid);
	struct psp_user *user;

	hlist_for_each_entry(user, bucket, node)
		if (uid_eq(user->uid, uid))
			goto found;
	user = kmem_cache_zalloc(psp_user_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!user)
		return NULL;
	user->uid = uid;
	INIT_LIST_HEAD(&user->idle);
	INIT_LIST_HEAD(&user->busy);
	psp_rank_add(&flows->by_flows, &user->flows);
	psp_rank_add(&flows->by_frames, &user->frames);
	hlist_add_head(&user->node, bucket);
	flows->users++;
found:
	psp_rank_set(&flows->by_flows, &user->flows, user->flows.count + 1);
	return user;
}

/* One flow less; the user goes with its last. */
void psp_user_put(struct psp_flows *flows, struct psp_user *user)
{
	psp_rank_set(&flows->by_flows, &user->flows, user->flows.count - 1);
	if (user->flows.count)
		return;
	psp_rank_del(&flows->by_flows, &user->flows);
	psp_rank_del(&flows->by_frames, &user->frames);
	hlist_del(&user->node);
	flows->users--;
	kmem_cache_free(psp_user_cache, user);
}

/* Into the buckets of another size; O(users). */
void psp_users_rehash(struct psp_flows *to, struct psp_flows *from)
{
	struct hlist_node *next;
	struct psp_user *user;
	u32 i;

	for (i = 0; i < 1u << from->bits; i++) {
		hlist_for_each_entry_safe(user, next, &from->bucket[i].users,
					  node) {
			hlist_del(&user->node);
			hlist_add_head(&user->node,
				       psp_user_bucket(to, user->uid));
		}
	}
}

/*
 * The flow that makes room for one of `newcomer`, who is counted with it; NULL:
 * nobody has more.  Of who has most: the one idle for longest, else the one
 * with the fewest frames of some.
 */
struct psp_flow *psp_flow_to_evict(struct psp_flows *flows,
				   const struct psp_user *newcomer)
{
	struct psp_flow *f, *least = NULL;
	struct psp_user *user;
	u32 looked = 0;

	if (psp_rank_is_top(&flows->by_flows, newcomer->flows.count))
		return NULL;
	user = container_of(psp_rank_top(&flows->by_flows), struct psp_user,
			    flows);
	if (!list_empty(&user->idle))
		return list_first_entry(&user->idle, struct psp_flow, mine);
	list_for_each_entry(f, &user->busy, mine) {
		if (!least || f->queue.qlen < least->queue.qlen)
			least = f;
		if (++looked == PSP_USER_LOOK)
			break;
	}
	return least;
}

/* The longest of some of the user's; others are looked at next time. */
static struct psp_flow *psp_user_longest(struct psp_user *user)
{
	struct psp_flow *f, *longest = NULL;
	u32 looked = 0;

	list_for_each_entry(f, &user->busy, mine) {
		if (!longest || f->queue.qlen > longest->queue.qlen)
			longest = f;
		if (++looked == PSP_USER_LOOK)
			break;
	}
	if (longest)
		list_rotate_left(&user->busy);
	return longest;
}

/* The flow that loses a frame for one of `arriving`; NULL: that one does. */
struct psp_flow *psp_flow_to_shorten(struct psp_flows *flows,
				     struct psp_flow *arriving)
{
	struct psp_user *user = arriving->user;
	struct psp_flow *f;

	if (!psp_rank_is_top(&flows->by_frames, user->frames.count + 1))
		return psp_user_longest(container_of(psp_rank_top(&flows->by_frames),
						     struct psp_user, frames));
	f = psp_user_longest(user);
	return f && f->queue.qlen > arriving->queue.qlen ? f : NULL;
}
