// SPDX-License-Identifier: GPL-2.0-only
/*
 * One end of a cable as a network device.
 *
 * Sending (wire_tx.c) computes a frame's departure, its fate at the far port
 * and its arrival. The timer stands for the NIC's interrupt: it completes sent
 * frames (ring, byte queue limit, socket memory) and passes arrived frames to
 * the stack. Both happen in NAPI and may be late, but never early; the
 * timeline's records do not depend on it.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/log2.h>
#include <linux/vmalloc.h>

#include "wire.h"

/* ---- receiving ---- */

/*
 * Detaches and returns up to @budget frames of @sender that have arrived by
 * @now_ps.
 */
static struct sk_buff *wire_arrived(struct wire_end *sender, u64 now_ps, int budget)
{
	struct sk_buff *first, *last = NULL, *skb;

	if (unlikely(sender->late))
		wire_late_join(sender, now_ps);
	first = sender->flight;
	for (skb = first; skb && budget && wire_cb(skb)->arrive_ps <= now_ps; skb = skb->next) {
		wire_slot_leave(skb);
		last = skb;
		budget--;
	}
	if (!last)
		return NULL;
	sender->flight = skb;
	last->next = NULL;
	return first;
}

/*
 * Passes a frame to the stack as a NIC's receive path does: the device is this
 * end, no socket owns the frame, and its checksum is verified.
 */
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
	u64 complete_ps, arrival_ps, now_ps;
	struct sk_buff *skb, *next;
	int done = 0;

	spin_lock(&end->lock);
	end->counter[WIRE_N_POLLS]++;
	wire_complete(end, wire_now_ps(), budget);
	wire_completion_due(end);
	arrival_ps = wire_arrival_due(end);
	spin_unlock(&end->lock);
	if (end->queues > 1)
		wire_arm(sender, arrival_ps);	/* for frames just chosen */

	wire_share_settle(sender, wire_now_ps());
	spin_lock(&sender->lock);
	now_ps = wire_now_ps();
	wire_choose(sender, now_ps);
	skb = wire_arrived(sender, now_ps, budget);
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

static void queues_reset(struct net_device *dev)
{
	u32 i;

	for (i = 0; i < dev->num_tx_queues; i++)
		netdev_tx_reset_queue(netdev_get_tx_queue(dev, i));
}

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
	queues_reset(dev);
	netif_tx_start_all_queues(dev);
	wire_carrier_update(end->cable);
	return 0;
}

/*
 * Closes an end. Frames it sent still arrive; frames in flight to it are lost.
 */
static int wire_stop(struct net_device *dev)
{
	struct wire_end *end = netdev_priv(dev), *peer = end->peer;
	struct sk_buff *lost, *entering;
	u64 arrival_ps;

	spin_lock_bh(&end->timer_lock);
	end->up = false;
	end->armed_ns = WIRE_NEVER;
	spin_unlock_bh(&end->timer_lock);
	wire_carrier_update(end->cable);
	netif_tx_disable(dev);
	hrtimer_cancel(&end->timer);
	napi_disable(&end->napi);

	spin_lock_bh(&peer->lock);
	peer->peer_up = false;
	lost = wire_arrived(peer, WIRE_NEVER, INT_MAX);
	entering = wire_share_abandon(peer);
	spin_unlock_bh(&peer->lock);
	kfree_skb_list(lost);
	kfree_skb_list(entering);

	local_bh_disable();
	spin_lock(&end->lock);
	wire_complete(end, WIRE_NEVER, 0);
	end->complete_ps = WIRE_NEVER;
	arrival_ps = wire_arrival_due(end);
	spin_unlock(&end->lock);
	wire_arm(peer, arrival_ps);
	local_bh_enable();
	queues_reset(dev);
	return 0;
}

static void wire_get_stats64(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	struct wire_end *end = netdev_priv(dev);

	spin_lock_bh(&end->lock);
	stats->tx_packets = end->counter[WIRE_N_DATA_FRAMES] + end->counter[WIRE_N_GAP_FRAMES];
	stats->tx_bytes = end->counter[WIRE_N_WIRE_BYTES] - stats->tx_packets * WIRE_OVERHEAD;
	stats->tx_dropped = end->counter[WIRE_N_DROPPED_CARRIER];
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
	u64 mbit = div_u64(end->cable->set.rate_bps, 1000000);	/* changed under RTNL */

	ks->base.speed = mbit ? mbit : SPEED_UNKNOWN;
	ks->base.duplex = DUPLEX_FULL;
	ks->base.port = PORT_DA;
	ks->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static void wire_get_pauseparam(struct net_device *dev, struct ethtool_pauseparam *pause)
{
	struct wire_end *end = netdev_priv(dev);

	pause->tx_pause = end->cable->tx_pause;	/* changed under RTNL */
}

static void wire_get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			       struct kernel_ethtool_ringparam *more,
			       struct netlink_ext_ack *extack)
{
	struct wire_end *end = netdev_priv(dev);

	ring->tx_max_pending = end->ring_frames;
	ring->tx_pending = end->ring_frames;
}

static const struct ethtool_ops wire_ethtool_ops = {
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = wire_get_link_ksettings,
	.get_pauseparam = wire_get_pauseparam,
	.get_ringparam = wire_get_ringparam,
};

/* ---- creation ---- */

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
	/*
	 * The cable queues the skb itself, so the stack must not send a shared
	 * one.
	 */
	dev->priv_flags &= ~IFF_TX_SKB_SHARING;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE | IFF_UNICAST_FLT;
}

static int wire_end_init(struct wire_end *end, struct wire_cable *cable, int side)
{
	const struct wire_settings *set = &cable->set;
	struct wire_queue *q;
	u32 i;

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
	wire_interrupt_init(end);
	BUILD_BUG_ON(sizeof(struct wire_record) != 32);

	end->queues = set->queues;
	end->queue = kcalloc(end->queues, sizeof(*end->queue), GFP_KERNEL);
	if (!end->queue)
		return -ENOMEM;
	for (i = 0; i < end->queues; i++) {
		q = &end->queue[i];
		q->ring = vzalloc(array_size(end->ring_mask + 1, sizeof(*q->ring)));
		if (!q->ring)
			return -ENOMEM;
	}
	end->flows = vzalloc(sizeof(*end->flows));
	return end->flows ? 0 : -ENOMEM;
}

/* Creates one end's device, not yet registered and without its peer. */
struct net_device *wire_dev_create(struct wire_cable *cable, int side)
{
	u8 mac[ETH_ALEN] = { 0x02, 0x70, 0x73, cable->number >> 8, cable->number, side + 1 };
	struct net_device *dev;
	struct wire_end *end;
	u32 i;

	dev = alloc_netdev_mqs(sizeof(*end), cable->set.ifname[side], NET_NAME_USER,
			       wire_dev_setup, cable->set.queues, 1);
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
	for (i = 0; i < dev->num_tx_queues; i++)
		netdev_get_tx_queue(dev, i)->dql.min_limit = cable->set.bql_min;
#endif
	return dev;
}

/* Frees a device that has been unregistered. */
void wire_dev_free(struct net_device *dev)
{
	struct wire_end *end = netdev_priv(dev);
	u32 i;

	wire_chunks_free(wire_log_take(&end->timeline));
	wire_chunks_free(wire_log_take(&end->snap));
	vfree(end->flows);
	wire_impair_free(end);
	for (i = 0; end->queue && i < end->queues; i++)
		vfree(end->queue[i].ring);
	kfree(end->queue);
	free_netdev(dev);
}
