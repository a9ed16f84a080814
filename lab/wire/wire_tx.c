// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends frames. A frame's departure, fate at the far port and arrival are
 * computed together as soon as the wire has chosen it. With one queue that is
 * when the frame is handed over; with several it is the first send, catch-up or
 * poll after the wire has become free.
 */
#include <linux/etherdevice.h>

#include "wire.h"

struct wire_frame {
	struct wire_flow_key key;	/* of data, when records are kept */
	u32 queue;
	enum wire_kind kind;
	enum wire_fate fate;
	u32 frame_bytes, wire_bytes;
	u64 start_ps, end_ps, arrive_ps;
	bool shared;			/* wire_share.c decides its fate later */
	bool late;			/* delayed out of order: wire_impair.c */
	struct wire_record *record;	/* NULL: none */
};

/* Computes departure, fate and arrival of a frame handed over at @given_ps. */
static void wire_travel(struct wire_end *end, struct wire_frame *f, const struct sk_buff *skb,
			u64 given_ps)
{
	enum wire_impaired impaired = WIRE_UNIMPAIRED;
	struct wire_lateness lateness;

	f->start_ps = wire_depart(&end->line, &end->rate, given_ps, f->wire_bytes, &f->end_ps);
	f->arrive_ps = 0;
	f->shared = false;
	f->late = false;
	if (f->kind != WIRE_DATA) {
		f->fate = WIRE_ENDED;
		return;
	}
	if (unlikely(end->impair))
		impaired = wire_impair(end, skb, f->start_ps, &lateness);
	if (unlikely(impaired == WIRE_IMPAIR_LOST)) {
		f->fate = WIRE_LOST;
		return;
	}
	if (unlikely(rcu_access_pointer(end->share)) && end->peer_up) {
		f->fate = WIRE_DELIVERED;
		f->shared = true;
		return;
	}
	f->fate = wire_port_pass(&end->port, f->end_ps + end->delay_ps, f->frame_bytes,
				 &f->arrive_ps);
	if (f->fate != WIRE_DELIVERED)
		return;
	if (unlikely(impaired == WIRE_IMPAIR_LATE)) {
		f->arrive_ps = max(f->arrive_ps + lateness.add_ps, lateness.until_ps);
		f->late = true;
	} else {
		/*
		 * Frames do not overtake, even after the port's delay has been
		 * shortened.
		 */
		f->arrive_ps = max(f->arrive_ps, end->last_arrive_ps);
		end->last_arrive_ps = f->arrive_ps;
	}
	if (end->cable->set.sink)
		f->fate = WIRE_SUNK;
}

static void wire_count(struct wire_end *end, const struct wire_frame *f)
{
	static const u8 fate_counter[] = {
		[WIRE_DELIVERED] = WIRE_N_DELIVERED,
		[WIRE_DROP_FIFO] = WIRE_N_DROPPED_FIFO,
		[WIRE_DROP_POLICER] = WIRE_N_DROPPED_POLICER,
		[WIRE_ENDED] = WIRE_N_ENDED,
		[WIRE_SUNK] = WIRE_N_SUNK,
		[WIRE_LOST] = WIRE_N_LOST,
	};

	end->counter[WIRE_N_WIRE_BYTES] += f->wire_bytes;
	if (!f->shared)
		end->counter[fate_counter[f->fate]]++;
	if (unlikely(f->late))
		end->counter[WIRE_N_LATE]++;
	if (f->kind == WIRE_DATA) {
		end->counter[WIRE_N_DATA_FRAMES]++;
		end->counter[WIRE_N_DATA_BYTES] += f->frame_bytes;
		return;
	}
	end->counter[WIRE_N_GAP_FRAMES]++;
	end->counter[WIRE_N_GAP_BYTES] += f->wire_bytes;
	if (f->kind == WIRE_PAUSE)
		end->counter[WIRE_N_PAUSE_FRAMES]++;
}

/* Copies a frame's first bytes, which are mostly linear. */
static void wire_snap(const struct wire_end *end, u8 *to, const struct sk_buff *skb)
{
	u32 bytes = end->snap_bytes;

	if (likely(skb_headlen(skb) >= bytes)) {
		memcpy(to, skb->data, bytes);
		return;
	}
	bytes = min(bytes, skb->len);
	if (skb_copy_bits(skb, 0, to, bytes))
		bytes = 0;
	memset(to + bytes, 0, end->snap_bytes - bytes);
}

/* Appends one record to the timeline and one snap, or neither. */
static void wire_record(struct wire_end *end, struct wire_frame *f, struct sk_buff *skb)
{
	bool snap = end->snap_bytes && f->kind == WIRE_DATA;
	u32 flow = WIRE_FLOW_NONE;
	struct wire_record *record;

	f->record = NULL;
	if (!end->records_max)
		return;
	if (end->timeline.count >= end->records_max || !wire_log_ready(&end->timeline) ||
	    (snap && !wire_log_ready(&end->snap))) {
		end->counter[WIRE_N_RECORDS_LOST]++;
		return;
	}
	if (f->kind == WIRE_DATA) {
		flow = wire_flow_index(end->flows, &f->key);
		if (flow == WIRE_FLOW_LOST)
			end->counter[WIRE_N_FLOWS_LOST]++;
	}
	record = wire_log_tail(&end->timeline);
	record->start_ps = cpu_to_le64(f->start_ps);
	record->arrive_ps = cpu_to_le64(f->arrive_ps);
	record->frame_bytes = cpu_to_le32(f->frame_bytes);
	record->wire_bytes = cpu_to_le32(f->wire_bytes);
	record->flow = cpu_to_le32(flow);
	record->kind = f->kind;
	record->fate = f->fate;
	record->queue = cpu_to_le16(f->queue);
	if (snap) {
		wire_snap(end, wire_log_tail(&end->snap), skb);
		wire_log_commit(&end->snap);
	}
	wire_log_commit(&end->timeline);
	end->counter[WIRE_N_RECORDS]++;
	f->record = record;
}

/*
 * Returns when frame number @at of a queue leaves the wire. The time is exact
 * once the wire has chosen the frame; before that it is a lower bound, which
 * holds if no other queue sends meanwhile.
 */
static u64 wire_end_at_least(const struct wire_end *end, const struct wire_queue *q, u32 at)
{
	const struct wire_slot *slot = &q->ring[at & end->ring_mask];

	if (likely((s32)(at - q->sent) < 0))
		return slot->end_ps;
	return end->line.free_ps +
	       (u64)(slot->upto_bytes - q->sent_bytes - WIRE_IFG) * end->rate.ps_per_byte;
}

/*
 * Returns when a queue's oldest uncompleted frames are due for a completion
 * interrupt.
 */
static u64 wire_queue_due(const struct wire_end *end, const struct wire_queue *q)
{
	const struct wire_settings *set = &end->cable->set;
	u32 waiting = q->head - q->tail;
	u64 due_ps;

	if (!waiting)
		return WIRE_NEVER;
	due_ps = wire_end_at_least(end, q, q->tail) + set->coalesce_ns * 1000;
	if (waiting >= set->coalesce_frames)
		due_ps = min(due_ps, wire_end_at_least(end, q,
						       q->tail + (u32)set->coalesce_frames - 1));
	return due_ps;
}

/*
 * Returns the earliest time at which frames that wait for the wire may
 * interrupt the receiver.
 */
static u64 wire_look_due(const struct wire_end *end)
{
	const struct wire_settings *set = &end->cable->set;

	if (!end->arbiter.waiting || !end->peer_up || set->sink)
		return WIRE_NEVER;
	return end->line.free_ps + end->delay_ps + set->rx_coalesce_ns * 1000;
}

/* Recomputes when the next interrupt for frames that this end sends is due. */
void wire_completion_due(struct wire_end *end)
{
	u64 due_ps = wire_look_due(end);
	u32 i;

	for (i = 0; i < end->queues; i++)
		due_ps = min(due_ps, wire_queue_due(end, &end->queue[i]));
	end->complete_ps = due_ps;
}

/* Appends a frame to those in flight to the shared port. */
static void wire_approach(struct wire_end *end, const struct wire_frame *f, struct sk_buff *skb)
{
	wire_cb(skb)->arrive_ps = f->end_ps + end->delay_ps;
	wire_cb(skb)->record = f->record;
	if (end->entering)
		end->entering_last->next = skb;
	else
		end->entering = skb;
	end->entering_last = skb;
}

/* Sends the frame that the wire has chosen, and fills in its descriptor. */
static void wire_send(struct wire_end *end, struct wire_frame *f, struct sk_buff *skb,
		      u64 given_ps)
{
	struct wire_queue *q = &end->queue[f->queue];
	struct wire_slot *slot = &q->ring[q->sent & end->ring_mask];

	wire_travel(end, f, skb, given_ps);
	wire_count(end, f);
	wire_record(end, f, skb);
	slot->end_ps = f->end_ps;
	slot->in_flight = f->fate == WIRE_DELIVERED && end->peer_up;
	if (slot->in_flight) {
		wire_cb(skb)->arrive_ps = f->arrive_ps;
		wire_cb(skb)->slot = slot;
		if (unlikely(f->shared))
			wire_approach(end, f, skb);
		else if (unlikely(f->late))
			wire_late_fly(end, skb);
		else
			wire_fly(end, skb);
	}
	q->sent++;
	q->sent_bytes += f->wire_bytes;
}

/*
 * Sends the frames that the wire has chosen by @now_ps and that were not
 * computed yet.
 */
void wire_choose_until(struct wire_end *end, u64 now_ps)
{
	struct wire_slot *slot;
	struct wire_queue *q;
	struct wire_frame f;

	while (wire_arbiter_due(&end->arbiter, &end->line, now_ps)) {
		f.queue = wire_arbiter_choose(&end->arbiter);
		q = &end->queue[f.queue];
		slot = &q->ring[q->sent & end->ring_mask];
		f.frame_bytes = slot->frame_bytes;
		f.wire_bytes = wire_length(slot->frame_bytes);
		f.kind = slot->kind;
		if (f.kind == WIRE_DATA && end->records_max)
			wire_frame_key(slot->skb, &f.key);
		wire_send(end, &f, slot->skb, slot->end_ps);
		if (q->sent == q->head)
			end->arbiter.waiting &= ~(1ULL << f.queue);
	}
}

/* Computes, records and puts in flight all frames that have left by now. */
void wire_catch_up(struct wire_end *end)
{
	u64 arrival_ps;

	wire_share_settle(end, wire_now_ps());
	if (end->queues == 1)
		return;
	local_bh_disable();
	spin_lock(&end->lock);
	wire_choose(end, wire_now_ps());
	arrival_ps = wire_arrival_due(end);
	spin_unlock(&end->lock);
	wire_arm(end->peer, arrival_ps);
	local_bh_enable();
}

/*
 * Gives the frame a descriptor. Sends it now if there is one queue, or if the
 * wire is free and no frame waits; else it waits for the wire to choose it.
 */
static void wire_give(struct wire_end *end, struct sk_buff *skb, struct wire_frame *f, u64 now_ps)
{
	struct wire_queue *q = &end->queue[f->queue];
	struct wire_slot *slot = &q->ring[q->head & end->ring_mask];
	u32 waiting;

	slot->skb = skb;
	slot->frame_bytes = f->frame_bytes;
	q->given_bytes += f->wire_bytes;
	slot->upto_bytes = q->given_bytes;
	q->head++;
	if (end->queues == 1 || (!end->arbiter.waiting && end->line.free_ps <= now_ps)) {
		end->arbiter.last = f->queue;
		wire_send(end, f, skb, now_ps);
	} else {
		slot->end_ps = now_ps;
		slot->kind = f->kind;
		end->arbiter.waiting |= 1ULL << f->queue;
		end->complete_ps = min(end->complete_ps, wire_look_due(end));
	}
	waiting = q->head - q->tail;
	if (waiting == 1 || waiting == end->cable->set.coalesce_frames)
		end->complete_ps = min(end->complete_ps, wire_queue_due(end, q));
}

/*
 * Returns true, on average once in busy_every frames, if the driver is to
 * answer that it is busy. The caller holds the end's lock.
 */
static bool wire_fault_busy(struct wire_end *end)
{
	struct wire_fault *fault = &end->fault;

	if (!fault->busy_every || wire_uniform(wire_random(&fault->random), fault->busy_every - 1))
		return false;
	end->counter[WIRE_N_BUSY_FAULTS]++;
	return true;
}

/*
 * Returns true if the NIC drops this gap frame: evenly, drop_gaps of 100. The
 * caller holds the end's lock.
 */
static bool wire_fault_gap(struct wire_end *end)
{
	struct wire_fault *fault = &end->fault;

	fault->drop_gaps_sum += fault->drop_gaps;
	if (fault->drop_gaps_sum < 100)
		return false;
	fault->drop_gaps_sum -= 100;
	return true;
}

/*
 * Applies the injected faults: drops the frame without a carrier or by a
 * filter, or returns it to the stack as busy. Returns true if the frame is not
 * to be sent.
 */
static bool wire_faulty(struct wire_end *end, struct sk_buff *skb, enum wire_kind kind,
			netdev_tx_t *status)
{
	if (end->fault.no_carrier) {
		end->counter[WIRE_N_DROPPED_CARRIER]++;
		dev_kfree_skb_any(skb);
		*status = NETDEV_TX_OK;
		return true;
	}
	if (end->fault.drop_control &&
	    ((const struct ethhdr *)skb->data)->h_proto == cpu_to_be16(ETH_P_PAUSE)) {
		end->counter[WIRE_N_FILTERED]++;
		dev_kfree_skb_any(skb);
		*status = NETDEV_TX_OK;
		return true;
	}
	if (kind != WIRE_DATA && end->fault.drop_gaps && wire_fault_gap(end)) {
		end->counter[WIRE_N_FILTERED]++;
		dev_kfree_skb_any(skb);
		*status = NETDEV_TX_OK;
		return true;
	}
	*status = NETDEV_TX_BUSY;
	return wire_fault_busy(end);
}

netdev_tx_t wire_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct wire_end *end = netdev_priv(dev);
	u64 complete_ps, arrival_ps, now_ps;
	struct netdev_queue *txq;
	struct wire_queue *q;
	struct wire_frame f;
	netdev_tx_t status;

	if (unlikely(skb_headlen(skb) < ETH_HLEN)) {
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	f.queue = skb_get_queue_mapping(skb);
	f.frame_bytes = skb->len;
	f.wire_bytes = wire_length(skb->len);
	f.kind = wire_frame_kind(skb);
	if (f.kind == WIRE_DATA && end->records_max)
		wire_frame_key(skb, &f.key);
	txq = netdev_get_tx_queue(dev, f.queue);
	q = &end->queue[f.queue];

	spin_lock(&end->lock);
	if (unlikely(q->head - q->tail == end->ring_frames)) {
		netif_tx_stop_queue(txq);	/* pktgen ignores the stop */
		spin_unlock(&end->lock);
		return NETDEV_TX_BUSY;
	}
	if (unlikely(end->fault.any) && wire_faulty(end, skb, f.kind, &status)) {
		spin_unlock(&end->lock);
		return status;
	}
	now_ps = wire_now_ps();
	wire_choose(end, now_ps);
	wire_give(end, skb, &f, now_ps);
	netdev_tx_sent_queue(txq, f.frame_bytes);
	if (unlikely(netif_xmit_stopped(txq)))
		end->counter[WIRE_N_BQL_STOPS]++;
	if (q->head - q->tail == end->ring_frames) {
		netif_tx_stop_queue(txq);
		end->counter[WIRE_N_RING_FULL]++;
	}
	complete_ps = end->complete_ps;
	arrival_ps = wire_arrival_due(end);
	spin_unlock(&end->lock);

	wire_arm(end, complete_ps);
	wire_arm(end->peer, arrival_ps);
	return NETDEV_TX_OK;
}

static void wire_queue_complete(struct wire_end *end, u32 number, u64 now_ps, int budget)
{
	struct netdev_queue *txq = netdev_get_tx_queue(end->dev, number);
	struct wire_queue *q = &end->queue[number];
	u32 frames = 0, bytes = 0;
	struct wire_slot *slot;

	for (; q->tail != q->sent; q->tail++) {
		slot = &q->ring[q->tail & end->ring_mask];
		if (slot->end_ps > now_ps)
			break;
		frames++;
		bytes += slot->frame_bytes;
		if (!slot->in_flight)
			napi_consume_skb(slot->skb, budget);
		else if (slot->skb)
			skb_orphan(slot->skb);
		slot->skb = NULL;
	}
	if (!frames)
		return;
	end->counter[WIRE_N_COMPLETIONS]++;
	netdev_tx_completed_queue(txq, frames, bytes);
	/*
	 * As NIC drivers do, wake the queue for several free descriptors, not
	 * for one.
	 */
	if (netif_tx_queue_stopped(txq) &&
	    q->head - q->tail <= end->ring_frames - DIV_ROUND_UP(end->ring_frames, 8))
		netif_tx_wake_queue(txq);
}

/*
 * Completes the frames that have left by @now_ps (WIRE_NEVER: all): releases
 * their socket memory and their descriptors.
 */
void wire_complete(struct wire_end *end, u64 now_ps, int budget)
{
	u32 i;

	wire_choose(end, now_ps);
	for (i = 0; i < end->queues; i++)
		wire_queue_complete(end, i, now_ps, budget);
}
