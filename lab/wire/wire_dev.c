// SPDX-License-Identifier: GPL-2.0-only
/*
 * One end of a cable as a network device.
 *
 * Sending computes everything at once: departure, fate at the far port, arrival.
 * What is left for timers is what a NIC does with an interrupt: complete sent
 * frames (ring, byte queue limit, socket memory) and hand arrived ones to the
 * stack. Both happen in NAPI, and only late, never early; the record does not
 * depend on it.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/log2.h>
#include <linux/vmalloc.h>

#include "wire.h"
#include "wire_compat.h"

/* Of a frame on its way, in skb->cb. */
struct wire_cb {
	u64 arrive_ps;
	u32 slot;			/* its transmit descriptor */
};

static struct wire_cb *wire_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct wire_cb) > sizeof(skb->cb));
	return (struct wire_cb *)skb->cb;
}

/* ---- the interrupt ---- */

static enum hrtimer_restart wire_interrupt(struct hrtimer *timer)
{
	struct wire_end *end = container_of(timer, struct wire_end, timer);

	WRITE_ONCE(end->armed_ns, WIRE_NEVER);
	napi_schedule(&end->napi);
	return HRTIMER_NORESTART;
}

/*
 * An interrupt at @due_ps at the latest. The timer itself does not take the
 * lock: should it expire just now, the poll it starts arms again for whatever is
 * due by then.
 */
static void wire_arm(struct wire_end *end, u64 due_ps)
{
	u64 due_ns;

	if (due_ps == WIRE_NEVER)
		return;
	due_ns = (due_ps + 999) / 1000;
	if (due_ns >= READ_ONCE(end->armed_ns))
		return;
	spin_lock(&end->timer_lock);
	if (end->up && due_ns < READ_ONCE(end->armed_ns)) {
		WRITE_ONCE(end->armed_ns, due_ns);
		hrtimer_start(&end->timer, ns_to_ktime(due_ns), HRTIMER_MODE_ABS_PINNED);
	}
	spin_unlock(&end->timer_lock);
}

/* When the frames on their way to a receiver ask for its interrupt. */
static u64 wire_arrival_due(const struct wire_end *sender)
{
	if (!sender->flight)
		return WIRE_NEVER;
	return wire_cb(sender->flight)->arrive_ps + sender->cable->set.rx_coalesce_ns * 1000;
}

/* ---- sending ---- */

struct wire_frame {
	struct wire_flow_key key;
	enum wire_kind kind;
	enum wire_fate fate;
	u32 frame_bytes, wire_bytes;
	u64 start_ps, end_ps, arrive_ps;
};

/* Departure, and what becomes of the frame at the far port. */
static void wire_travel(struct wire_end *end, struct wire_frame *f, u64 now_ps)
{
	f->start_ps = wire_depart(&end->line, &end->rate, now_ps, f->wire_bytes, &f->end_ps);
	f->arrive_ps = 0;
	if (f->kind != WIRE_DATA) {
		f->fate = WIRE_ENDED;
		return;
	}
	f->fate = wire_port_pass(&end->port, f->end_ps + end->delay_ps, f->frame_bytes,
				 &f->arrive_ps);
	if (f->fate != WIRE_DELIVERED)
		return;
	/* No overtaking, also when the port was changed to a shorter delay. */
	f->arrive_ps = max(f->arrive_ps, end->last_arrive_ps);
	end->last_arrive_ps = f->arrive_ps;
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
	};

	end->counter[WIRE_N_WIRE_BYTES] += f->wire_bytes;
	end->counter[fate_counter[f->fate]]++;
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

/* Most often the first bytes lie in one piece. */
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

/* One line of the timeline and one snap, or neither. */
static void wire_record(struct wire_end *end, const struct wire_frame *f, struct sk_buff *skb)
{
	bool snap = end->snap_bytes && f->kind == WIRE_DATA;
	u32 flow = WIRE_FLOW_NONE;
	struct wire_record *record;

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
	record->queue = 0;
	if (snap) {
		wire_snap(end, wire_log_tail(&end->snap), skb);
		wire_log_commit(&end->snap);
	}
	wire_log_commit(&end->timeline);
	end->counter[WIRE_N_RECORDS]++;
}

/* When the oldest uncompleted frames ask for a completion interrupt. */
static void wire_completion_due(struct wire_end *end)
{
	const struct wire_settings *set = &end->cable->set;
	u32 waiting = end->head - end->tail, last;
	u64 due_ps;

	if (!waiting) {
		end->complete_ps = WIRE_NEVER;
		return;
	}
	due_ps = end->ring[end->tail & end->ring_mask].end_ps + set->coalesce_ns * 1000;
	if (waiting >= set->coalesce_frames) {
		last = end->tail + (u32)set->coalesce_frames - 1;
		due_ps = min(due_ps, end->ring[last & end->ring_mask].end_ps);
	}
	end->complete_ps = due_ps;
}

static void wire_launch(struct wire_end *end, struct sk_buff *skb, const struct wire_frame *f)
{
	u32 at = end->head & end->ring_mask, waiting;
	struct wire_slot *slot = &end->ring[at];

	slot->end_ps = f->end_ps;
	slot->skb = skb;
	slot->frame_bytes = f->frame_bytes;
	slot->in_flight = f->fate == WIRE_DELIVERED && end->peer_up;
	if (slot->in_flight) {
		wire_cb(skb)->arrive_ps = f->arrive_ps;
		wire_cb(skb)->slot = at;
		if (end->flight)
			end->flight_last->next = skb;
		else
			end->flight = skb;
		end->flight_last = skb;
	}
	end->head++;
	waiting = end->head - end->tail;
	if (waiting == 1 || waiting == end->cable->set.coalesce_frames)
		wire_completion_due(end);
}

static netdev_tx_t wire_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct netdev_queue *txq = netdev_get_tx_queue(dev, 0);
	struct wire_end *end = netdev_priv(dev);
	u64 complete_ps, arrival_ps;
	struct wire_frame f;

	if (unlikely(skb_headlen(skb) < ETH_HLEN)) {
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	f.frame_bytes = skb->len;
	f.wire_bytes = wire_length(skb->len);
	f.kind = wire_frame_kind(skb);
	if (f.kind == WIRE_DATA && end->records_max)
		wire_frame_key(skb, &f.key);

	spin_lock(&end->lock);
	if (unlikely(end->head - end->tail == end->ring_frames)) {
		netif_tx_stop_queue(txq);	/* pktgen asks us though we said stop */
		spin_unlock(&end->lock);
		return NETDEV_TX_BUSY;
	}
	wire_travel(end, &f, wire_now_ps());
	wire_count(end, &f);
	wire_record(end, &f, skb);
	wire_launch(end, skb, &f);
	netdev_tx_sent_queue(txq, f.frame_bytes);
	if (unlikely(netif_xmit_stopped(txq)))
		end->counter[WIRE_N_BQL_STOPS]++;
	if (end->head - end->tail == end->ring_frames) {
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

/* Frames that have left by @now_ps, or all: their memory and room are free again. */
static void wire_complete(struct wire_end *end, u64 now_ps, int budget)
{
	struct netdev_queue *txq = netdev_get_tx_queue(end->dev, 0);
	u32 frames = 0, bytes = 0;
	struct wire_slot *slot;

	for (; end->tail != end->head; end->tail++) {
		slot = &end->ring[end->tail & end->ring_mask];
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
	/* Like a NIC driver, not for every single descriptor. */
	if (netif_tx_queue_stopped(txq) &&
	    end->head - end->tail <= end->ring_frames - DIV_ROUND_UP(end->ring_frames, 8))
		netif_tx_wake_queue(txq);
}

/* ---- receiving ---- */

/* Take up to @budget frames that have arrived from the far end's direction. */
static struct sk_buff *wire_arrived(struct wire_end *sender, u64 now_ps, int budget)
{
	struct sk_buff *first = sender->flight, *last = NULL, *skb;
	struct wire_slot *slot;

	for (skb = first; skb && budget && wire_cb(skb)->arrive_ps <= now_ps; skb = skb->next) {
		/* Not completed yet: nothing is left for the completion to release. */
		slot = &sender->ring[wire_cb(skb)->slot];
		if (slot->skb == skb)
			slot->skb = NULL;
		last = skb;
		budget--;
	}
	if (!last)
		return NULL;
	sender->flight = skb;
	last->next = NULL;
	return first;
}

/* As a NIC's receive path: a frame of this end, owned by nobody, checksum good. */
static void wire_receive(struct wire_end *end, struct sk_buff *skb)
{
	skb_orphan(skb);
	/*
	 * A clone shares its fragments with the sender's retransmit queue; GRO
	 * would move them out of there.
	 */
	if (unlikely(skb_unclone(skb, GFP_ATOMIC))) {
		kfree_skb(skb);
		return;
	}
	skb_scrub_packet(skb, true);
	skb_set_queue_mapping(skb, 0);
	skb->priority = 0;
	skb->protocol = eth_type_trans(skb, end->dev);
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	napi_gro_receive(&end->napi, skb);
}

static int wire_poll(struct napi_struct *napi, int budget)
{
	struct wire_end *end = container_of(napi, struct wire_end, napi);
	struct wire_end *sender = end->peer;
	struct sk_buff *skb, *next;
	u64 complete_ps, arrival_ps;
	int done = 0;

	spin_lock(&end->lock);
	end->counter[WIRE_N_POLLS]++;
	wire_complete(end, wire_now_ps(), budget);
	wire_completion_due(end);
	spin_unlock(&end->lock);

	spin_lock(&sender->lock);
	skb = wire_arrived(sender, wire_now_ps(), budget);
	spin_unlock(&sender->lock);
	for (; skb; skb = next) {
		next = skb->next;
		skb_mark_not_on_list(skb);
		wire_receive(end, skb);
		done++;
	}

	if (done)
		WRITE_ONCE(end->counter[WIRE_N_RX_FRAMES],
			   end->counter[WIRE_N_RX_FRAMES] + done);
	if (done >= budget || !napi_complete_done(napi, done))
		return done;

	spin_lock(&end->lock);
	complete_ps = end->complete_ps;
	spin_unlock(&end->lock);
	spin_lock(&sender->lock);
	arrival_ps = wire_arrival_due(sender);
	spin_unlock(&sender->lock);
	wire_arm(end, min(complete_ps, arrival_ps));
	return done;
}

/* ---- up, down ---- */

static int wire_open(struct net_device *dev)
{
	struct wire_end *end = netdev_priv(dev), *peer = end->peer;

	napi_enable(&end->napi);
	spin_lock_bh(&end->timer_lock);
	end->up = true;
	spin_unlock_bh(&end->timer_lock);
	spin_lock_bh(&peer->lock);
	peer->peer_up = true;
	spin_unlock_bh(&peer->lock);
	netdev_reset_queue(dev);
	netif_start_queue(dev);
	if (netif_running(peer->dev)) {
		netif_carrier_on(dev);
		netif_carrier_on(peer->dev);
	}
	return 0;
}

/* What was sent goes on to the far end; what was on its way here is lost. */
static int wire_stop(struct net_device *dev)
{
	struct wire_end *end = netdev_priv(dev), *peer = end->peer;
	struct sk_buff *lost;

	netif_carrier_off(dev);
	netif_carrier_off(peer->dev);
	netif_tx_disable(dev);

	spin_lock_bh(&end->timer_lock);
	end->up = false;
	end->armed_ns = WIRE_NEVER;
	spin_unlock_bh(&end->timer_lock);
	hrtimer_cancel(&end->timer);
	napi_disable(&end->napi);

	spin_lock_bh(&peer->lock);
	peer->peer_up = false;
	lost = wire_arrived(peer, WIRE_NEVER, INT_MAX);
	spin_unlock_bh(&peer->lock);
	kfree_skb_list(lost);

	spin_lock_bh(&end->lock);
	wire_complete(end, WIRE_NEVER, 0);
	end->complete_ps = WIRE_NEVER;
	spin_unlock_bh(&end->lock);
	netdev_reset_queue(dev);
	return 0;
}

static void wire_get_stats64(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	struct wire_end *end = netdev_priv(dev);

	spin_lock_bh(&end->lock);
	stats->tx_packets = end->counter[WIRE_N_DATA_FRAMES] + end->counter[WIRE_N_GAP_FRAMES];
	stats->tx_bytes = end->counter[WIRE_N_WIRE_BYTES] - stats->tx_packets * WIRE_OVERHEAD;
	stats->rx_packets = READ_ONCE(end->counter[WIRE_N_RX_FRAMES]);
	spin_unlock_bh(&end->lock);
}

static const struct net_device_ops wire_ops = {
	.ndo_open = wire_open,
	.ndo_stop = wire_stop,
	.ndo_start_xmit = wire_xmit,
	.ndo_get_stats64 = wire_get_stats64,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

static int wire_get_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *ks)
{
	struct wire_end *end = netdev_priv(dev);
	u64 mbit = div_u64(end->cable->set.rate_bps, 1000000);

	ks->base.speed = mbit ? mbit : SPEED_UNKNOWN;
	ks->base.duplex = DUPLEX_FULL;
	ks->base.port = PORT_DA;
	ks->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static const struct ethtool_ops wire_ethtool_ops = {
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = wire_get_link_ksettings,
};

/* ---- making one ---- */

static void wire_dev_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &wire_ops;
	dev->ethtool_ops = &wire_ethtool_ops;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = 65000;
	dev->features |= NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA;
	dev->hw_features = NETIF_F_SG | NETIF_F_HW_CSUM;
	dev->vlan_features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA;
	/* A frame waits in the cable in its own skb, so it cannot be sent twice at once. */
	dev->priv_flags &= ~IFF_TX_SKB_SHARING;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE | IFF_UNICAST_FLT;
}

static int wire_end_init(struct wire_end *end, struct wire_cable *cable, int side)
{
	const struct wire_settings *set = &cable->set;

	end->cable = cable;
	end->side = 'a' + side;
	spin_lock_init(&end->lock);
	spin_lock_init(&end->timer_lock);
	end->rate = wire_rate_of(set->rate_bps);
	end->delay_ps = set->delay_ns * 1000;
	wire_port_start(&end->port, wire_now_ps());
	end->ring_frames = set->ring;
	end->ring_mask = roundup_pow_of_two(set->ring) - 1;
	end->complete_ps = WIRE_NEVER;
	end->armed_ns = WIRE_NEVER;
	end->snap_bytes = set->snap;
	end->records_max = set->records_max;
	wire_log_init(&end->timeline, sizeof(struct wire_record));
	wire_log_init(&end->snap, set->snap);
	hrtimer_setup(&end->timer, wire_interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED);
	BUILD_BUG_ON(sizeof(struct wire_record) != 32);

	end->ring = vzalloc(array_size(end->ring_mask + 1, sizeof(*end->ring)));
	end->flows = vzalloc(sizeof(*end->flows));
	return end->ring && end->flows ? 0 : -ENOMEM;
}

/* Not registered yet, and without its peer. */
struct net_device *wire_dev_create(struct wire_cable *cable, int side)
{
	u8 mac[ETH_ALEN] = { 0x02, 0x70, 0x73, cable->number >> 8, cable->number, side + 1 };
	struct net_device *dev;
	struct wire_end *end;

	dev = alloc_netdev(sizeof(*end), cable->set.ifname[side], NET_NAME_USER, wire_dev_setup);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	end = netdev_priv(dev);
	end->dev = dev;
	eth_hw_addr_set(dev, mac);
	dev->mtu = cable->set.mtu;
	netif_napi_add(dev, &end->napi, wire_poll);
	if (wire_end_init(end, cable, side)) {
		wire_dev_free(dev);
		return ERR_PTR(-ENOMEM);
	}
	netif_carrier_off(dev);
#ifdef CONFIG_BQL
	netdev_get_tx_queue(dev, 0)->dql.min_limit = cable->set.bql_min;
#endif
	return dev;
}

/* Not registered any more. */
void wire_dev_free(struct net_device *dev)
{
	struct wire_end *end = netdev_priv(dev);

	wire_chunks_free(wire_log_take(&end->timeline));
	wire_chunks_free(wire_log_take(&end->snap));
	vfree(end->flows);
	vfree(end->ring);
	free_netdev(dev);
}
