// SPDX-License-Identifier: GPL-2.0-only
/*
 * Joins two cables at one far port: the frames that both ends send enter the
 * same bottleneck, in the order in which they reach it.
 *
 * A frame's fate then depends on frames of the other cable, some of which are
 * not known yet when it is sent. So it waits in its end's list until a poll or
 * a catch-up happens after it has reached the port: any frame sent later
 * reaches the port later. Decisions are made in order, so making them late
 * changes no result.
 */
#define pr_fmt(fmt) "wire: " fmt

#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "wire.h"

struct wire_share {
	struct wire_end *end[2];	/* the first one's port is the shared one */
};

/* Takes both ends' locks, always in the order of share->end. */
static void share_lock(struct wire_share *share)
	__acquires(&share->end[0]->lock) __acquires(&share->end[1]->lock)
{
	spin_lock_bh(&share->end[0]->lock);
	spin_lock_nested(&share->end[1]->lock, SINGLE_DEPTH_NESTING);
}

static void share_unlock(struct wire_share *share)
	__releases(&share->end[1]->lock) __releases(&share->end[0]->lock)
{
	spin_unlock(&share->end[1]->lock);
	spin_unlock_bh(&share->end[0]->lock);
}

/*
 * Returns the end whose first waiting frame reaches the port first, by @now_ps,
 * or NULL.
 */
static struct wire_end *share_next(struct wire_share *share, u64 now_ps)
{
	struct wire_end *next = NULL;
	u64 first_ps = now_ps;
	int i;

	for (i = 1; i >= 0; i--) {
		struct sk_buff *skb = share->end[i]->entering;

		if (skb && wire_cb(skb)->arrive_ps <= first_ps) {
			first_ps = wire_cb(skb)->arrive_ps;
			next = share->end[i];
		}
	}
	return next;
}

/* Writes a frame's fate to its record and to the counters. */
static void share_note(struct wire_end *end, struct sk_buff *skb, enum wire_fate fate,
		       u64 arrive_ps)
{
	struct wire_record *record = wire_cb(skb)->record;

	if (fate == WIRE_DELIVERED)
		end->counter[WIRE_N_DELIVERED]++;
	else if (fate == WIRE_DROP_FIFO)
		end->counter[WIRE_N_DROPPED_FIFO]++;
	else
		end->counter[WIRE_N_DROPPED_POLICER]++;
	if (!record)
		return;
	record->arrive_ps = cpu_to_le64(arrive_ps);
	record->fate = fate;
}

/*
 * Passes the first waiting frame of @end to the port. Returns it if it was
 * dropped.
 */
static struct sk_buff *share_enter(struct wire_share *share, struct wire_end *end)
{
	struct sk_buff *skb = end->entering;
	u64 arrive_ps = 0;
	enum wire_fate fate;

	end->entering = skb->next;
	skb->next = NULL;
	fate = wire_port_pass(&share->end[0]->port, wire_cb(skb)->arrive_ps, skb->len,
			      &arrive_ps);
	if (fate != WIRE_DELIVERED) {
		share_note(end, skb, fate, 0);
		wire_slot_leave(skb);
		return skb;
	}
	/*
	 * Frames do not overtake, even after the port's delay has been
	 * shortened.
	 */
	arrive_ps = max(arrive_ps, end->last_arrive_ps);
	end->last_arrive_ps = arrive_ps;
	share_note(end, skb, fate, arrive_ps);
	wire_cb(skb)->arrive_ps = arrive_ps;
	wire_fly(end, skb);
	return NULL;
}

/*
 * Passes all frames that have reached the port by @now_ps; returns the dropped
 * ones.
 */
static struct sk_buff *share_decide(struct wire_share *share, u64 now_ps)
{
	struct sk_buff *dropped = NULL, *skb;
	struct wire_end *end;
	int i;

	for (i = 0; i < 2; i++)
		wire_choose(share->end[i], now_ps);
	while ((end = share_next(share, now_ps))) {
		skb = share_enter(share, end);
		if (!skb)
			continue;
		skb->next = dropped;
		dropped = skb;
	}
	return dropped;
}

/*
 * Decides the fate of frames that have reached the port that @end shares, if it
 * shares one.
 */
void wire_share_settle(struct wire_end *end, u64 now_ps)
{
	struct sk_buff *dropped = NULL;
	struct wire_share *share;

	rcu_read_lock();
	share = rcu_dereference(end->share);
	if (share) {
		share_lock(share);
		dropped = share_decide(share, now_ps);
		share_unlock(share);
	}
	rcu_read_unlock();
	kfree_skb_list(dropped);
}

/*
 * Detaches and returns the frames of @end that have not entered the port: they
 * are lost because the host behind the port has gone down.
 */
struct sk_buff *wire_share_abandon(struct wire_end *end)
{
	struct sk_buff *first = end->entering, *skb;

	for (skb = first; skb; skb = skb->next)
		wire_slot_leave(skb);
	end->entering = NULL;
	return first;
}

/*
 * Makes the frames that @from sends enter the far port of @into. The caller
 * holds the mutex of the cables.
 */
int wire_share_join(struct wire_end *into, struct wire_end *from)
{
	struct wire_share *share;

	if (into->cable == from->cable || into->cable->set.sink || from->cable->set.sink) {
		pr_err("two cables that are no sinks can share a port\n");
		return -EINVAL;
	}
	if (rcu_access_pointer(into->share) || rcu_access_pointer(from->share)) {
		pr_err("a port is shared by two ends\n");
		return -EBUSY;
	}
	share = kmalloc(sizeof(*share), GFP_KERNEL);
	if (!share)
		return -ENOMEM;
	share->end[0] = into;
	share->end[1] = from;
	share_lock(share);
	rcu_assign_pointer(into->share, share);
	rcu_assign_pointer(from->share, share);
	share_unlock(share);
	return 0;
}

/*
 * Ends sharing: decides the fate of waiting frames, then gives each end its own
 * port.
 */
void wire_share_leave(struct wire_end *end)
{
	struct wire_share *share = rcu_dereference_protected(end->share, true);
	struct sk_buff *dropped;

	if (!share)
		return;
	share_lock(share);
	dropped = share_decide(share, WIRE_NEVER);
	RCU_INIT_POINTER(share->end[0]->share, NULL);
	RCU_INIT_POINTER(share->end[1]->share, NULL);
	share_unlock(share);
	kfree_skb_list(dropped);
	synchronize_net();
	kfree(share);
}
