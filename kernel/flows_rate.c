// SPDX-License-Identifier: GPL-2.0-only
/*
 * At which rate does a flow go?
 *
 * Paper 003: target rate = packet size x cwnd / RTT.  Packet size is a full
 * one, MSS and headers, in the bytes that rates count: a window is counted in
 * packets of that size.  Where the window may double within the RTT (slow
 * start, cwnd < ssthresh / 2) it counts twice, after it an eighth more than once.
 * RTT is TCP's smoothed one (each sample moves it by 1/8), and there is no other
 * smoothing.
 *
 * Who may read a socket.  Only with a frame of it in hand, that owns it by its
 * destructor: then it cannot go away.  Its fields are read without its lock;
 * each is one word, and a value that is one ACK old is as good as another.
 *
 * What the stack does itself.  SK_PACING_FQ tells it that a qdisc paces: it
 * needs no timers of its own, and stamps frames with the time at which they
 * would leave by sk_pacing_rate.  RTT is measured from that, so that the wait
 * for pacing is not taken for a queue on the path.  But a flow must then never
 * be faster than sk_pacing_rate: its RTT would come out too short, its rate too
 * high, and so on.  For most congestion controls sk_pacing_rate is 1.2 (slow
 * start: 2) times the formula, at most SO_MAX_PACING_RATE.
 *
 * docs/decisions/0027, 0028.
 */
#include <linux/math64.h>
#include <net/inet_connection_sock.h>
#include <net/tcp.h>

#include "psp.h"

/*
 * By default a largest frame waits for at most so long for its flow's clock:
 * TCP's shortest retransmission timeout (TCP_RTO_MIN).
 */
#define PSP_FLOOR_MS		200

/* Bits in a window: products stay within 64 bits up to 128 GiB. */
#define PSP_WINDOW_BITS_MAX	(1ull << 40)

/* The socket that paces `skb`, or NULL: the class itself does. */
struct sock *psp_flow_socket(const struct sk_buff *skb)
{
	struct sock *sk = skb->sk;

	/* No destructor, no reference. Request and TIME_WAIT socks: no rate. */
	if (!sk || !skb->destructor || !sk_fullsock(sk))
		return NULL;
	if (!sk_is_tcp(sk))
		return READ_ONCE(sk->sk_max_pacing_rate) != ~0UL ? sk : NULL;
	/*
	 * A SYN-ACK is no part of a flow yet.  The window limits data: the
	 * receiver of a fast flow has a small one, and ACKs to send.
	 */
	if (READ_ONCE(sk->sk_state) == TCP_LISTEN || skb_is_tcp_pure_ack(skb))
		return NULL;
	return sk;
}

/* A packet of so many bytes from its IP header on, as rates count it. */
static u32 psp_packet_bytes(const struct psp_qdisc *q, u32 ip_bytes)
{
	u32 bytes = ip_bytes + q->port.pace.link_header_bytes;
	const struct pace_burst packet = {
		.len_bytes = bytes,
		.frames = 1,
		.wire_bytes = pace_wire_bytes(&q->pace, bytes),
	};

	return pace_counted_bytes(&q->port.pace, &packet);
}

/*
 * No flow is slower, whatever its socket asks for.  By default its clock takes
 * one horizon for a largest frame: no idle flow keeps its place for longer.
 */
static u64 psp_flow_least(const struct psp_qdisc *q, const struct psp_class *cl)
{
	const struct pace_config *cfg = &q->port.pace;
	u64 least_bps = cl->opt.pacing_floor_bps;

	if (!least_bps)
		least_bps = div64_u64(cfg->max_frame_bytes *
				      (u64)BITS_PER_BYTE * NSEC_PER_SEC,
				      cl->opt.horizon_ns);
	return max(least_bps, pace_least_rate_bps(cfg));
}

static u64 psp_flow_floor(const struct psp_qdisc *q, const struct psp_class *cl)
{
	const struct pace_config *cfg = &q->port.pace;
	u64 floor_bps = cl->opt.floor_bps;

	if (!floor_bps)
		floor_bps = div_u64((u64)cfg->max_frame_bytes * BITS_PER_BYTE *
				    MSEC_PER_SEC, PSP_FLOOR_MS);
	return floor_bps;
}

/* TCP counts payload: what `payload_Bps` of it are in frames of a full one. */
static u64 psp_rate_of_payload(unsigned long payload_Bps, u32 packet_bytes,
			       u32 mss_bytes, u64 ceil_bps)
{
	/* Also where no rate is set (~0UL). */
	if (payload_Bps > ceil_bps / BITS_PER_BYTE)
		return ceil_bps;
	return div_u64((u64)payload_Bps * BITS_PER_BYTE * packet_bytes,
		       mss_bytes);
}

/*
 * A congestion control that has cong_control() sets sk_pacing_rate itself; for
 * the others TCP works it out.
 *
 * RCU: a congestion control is unregistered before its memory goes.
 */
static bool psp_has_own_rate(const struct sock *sk)
{
	return READ_ONCE(inet_csk(sk)->icsk_ca_ops)->cong_control;
}

/*
 * The window that the next RTT begins with.  After slow start it is an eighth
 * more: paced at exactly the window, what is in flight never reaches it, and
 * TCP lets a window grow only if it was the limit (docs/decisions/0027).
 */
static u64 psp_window_bits(const struct tcp_sock *tp, u32 packet_bytes)
{
	u64 packets = READ_ONCE(tp->snd_cwnd);

	if (packets < READ_ONCE(tp->snd_ssthresh) / 2)
		packets *= 2;
	else
		packets += packets / 8;
	return min(packets * packet_bytes * BITS_PER_BYTE, PSP_WINDOW_BITS_MAX);
}

static u64 psp_tcp_rate(const struct psp_qdisc *q, const struct psp_class *cl,
			struct sock *sk, u64 ceil_bps, bool *exact)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 mss_bytes = READ_ONCE(tp->mss_cache);
	u32 srtt_us8 = READ_ONCE(tp->srtt_us);		/* in 1/8 us */
	u64 rate_bps = cl->pace.rate_bps, own_bps;
	u32 packet_bytes;

	if (unlikely(!mss_bytes))
		return rate_bps;
	packet_bytes = psp_packet_bytes(q, mss_bytes +
		READ_ONCE(tp->tcp_header_len) + icsk->icsk_ext_hdr_len +
		READ_ONCE(icsk->icsk_af_ops)->net_header_len);

	if (srtt_us8) {
		rate_bps = div_u64(psp_window_bits(tp, packet_bytes) *
				   USEC_PER_SEC * 8, srtt_us8);
		rate_bps = max(rate_bps, psp_flow_floor(q, cl));
	}

	if (READ_ONCE(sk->sk_pacing_status) != SK_PACING_FQ) {
		/* Pairs with the acquire of tcp_needs_internal_pacing(). */
		smp_store_release(&sk->sk_pacing_status, SK_PACING_FQ);
	}
	own_bps = psp_rate_of_payload(READ_ONCE(sk->sk_pacing_rate),
				      packet_bytes, mss_bytes, ceil_bps);
	if (own_bps > rate_bps && !psp_has_own_rate(sk))
		return rate_bps;
	*exact = true;
	return own_bps;
}

/*
 * The rate of a flow now, in bit/s as the layer counts; `exact`: it is a limit
 * that must not be passed even a little.
 */
u64 psp_flow_rate(const struct psp_qdisc *q, const struct psp_class *cl,
		  struct sock *sk, bool *exact)
{
	u64 ceil_bps = psp_class_ceil_bps(q, cl);
	unsigned long max_Bps;
	u64 rate_bps;

	*exact = false;
	if (sk_is_tcp(sk)) {
		rate_bps = psp_tcp_rate(q, cl, sk, ceil_bps, exact);
	} else {
		max_Bps = READ_ONCE(sk->sk_max_pacing_rate);
		*exact = true;
		rate_bps = max_Bps > ceil_bps / BITS_PER_BYTE ?
			   ceil_bps : (u64)max_Bps * BITS_PER_BYTE;
	}
	rate_bps = max(rate_bps, psp_flow_least(q, cl));
	if (rate_bps >= ceil_bps) {
		*exact = true;
		return ceil_bps;
	}
	return rate_bps;
}
