// SPDX-License-Identifier: GPL-2.0-only
/*
 * Children that hold packets back (netem, tbf, fq): docs/decisions/0022.
 *
 * A child that holds packets but gives none sets a timer of its own and runs
 * the root when it fires.  psp cannot see which child it was.  The class of
 * such a child leaves the schedule and joins the list of throttled ones, and
 * whenever the root runs psp asks them again: the first of the list is asked,
 * and becomes the last.
 *
 *  - While the wire is busy, each dequeue asks PSP_ASK_BUSY of them before it
 *    decides who is next.  Of k throttled children one that is ready is asked
 *    within k / PSP_ASK_BUSY packets.
 *  - While nothing else can be sent, each dequeue asks up to PSP_ASK_IDLE of
 *    them at once.  If there are more, psp_ask_timer() asks the others, so many
 *    every PSP_ASK_PAUSE_NS, and stops when it has asked each of them once.
 *
 * So nothing is asked unless the root runs, and nobody's wait depends on how
 * many packets other classes have.
 */
#include "psp.h"
#include "compat/dequeue_drop.h"
#include "compat/hrtimer.h"

/* What each packet of a busy wire pays: two calls that may return NULL. */
#define PSP_ASK_BUSY		2
/* Bounds how long the lock is held, as PSP_MISSES does in dequeue.c. */
#define PSP_ASK_IDLE		64
/* Leaves the lock and the processor to others between two such calls. */
#define PSP_ASK_PAUSE_NS	(50 * NSEC_PER_USEC)

/* The class has packets, but its child gives none now.  It is not active. */
void psp_throttle(struct psp_qdisc *q, struct psp_class *cl)
{
	if (psp_child_is_throttled(cl))
		return;
	list_add_tail(&cl->throttled, &q->throttled);
	q->throttled_count++;
	q->count.child_retries++;
}

void psp_unthrottle(struct psp_qdisc *q, struct psp_class *cl)
{
	if (!psp_child_is_throttled(cl))
		return;
	list_del_init(&cl->throttled);
	q->throttled_count--;
}

/*
 * Asks the child of a throttled class.  A packet that it gives waits in
 * psp_class.head for the class's turn.
 */
static bool psp_ask(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	cl->head = psp_pull(q, cl);
	if (cl->head) {
		psp_unthrottle(q, cl);
		psp_report_backlog(q, cl, now_ns);
		psp_wake(q, cl, now_ns);
		return true;
	}
	if (cl->child->q.qlen) {
		list_move_tail(&cl->throttled, &q->throttled);
		q->count.child_retries++;
	} else {
		psp_unthrottle(q, cl);
	}
	return false;
}

/* Asks up to `most` throttled children.  Is a class active now that was not? */
static bool psp_ask_some(struct psp_qdisc *q, u32 most, u64 now_ns)
{
	bool ready = false;

	for (most = min(most, q->throttled_count); most; most--) {
		if (list_empty(&q->throttled))
			break;
		ready |= psp_ask(q, list_first_entry(&q->throttled,
						     struct psp_class,
						     throttled), now_ns);
	}
	return ready;
}

/* Dequeue begins. */
void psp_ask_busy(struct psp_qdisc *q, u64 now_ns)
{
	psp_ask_some(q, PSP_ASK_BUSY, now_ns);
}

/* Nothing can be sent now.  Is a class active now that was not? */
bool psp_ask_idle(struct psp_qdisc *q, u64 now_ns)
{
	return psp_ask_some(q, PSP_ASK_IDLE, now_ns);
}

static void psp_ask_set_timer(struct psp_qdisc *q)
{
	if (!hrtimer_is_queued(&q->ask_timer))
		hrtimer_start(&q->ask_timer, ns_to_ktime(PSP_ASK_PAUSE_NS),
			      HRTIMER_MODE_REL_PINNED_SOFT);
}

/*
 * Dequeue ends without a packet, after psp_ask_idle().  The timer does not run
 * the root: a run of the root tells of a child's timer, and dequeue could not
 * tell the two apart.  It begins anew with all of the list, as the child whose
 * timer fired may have been asked before it did.
 */
void psp_ask_others(struct psp_qdisc *q)
{
	if (q->throttled_count <= PSP_ASK_IDLE)
		return;
	q->ask_left = q->throttled_count;
	psp_ask_set_timer(q);
}

/*
 * psp is the root of its transmit queue, or of all: the root lock is its own.
 * A class can go while no lock is held, and the qdisc itself not before
 * psp_ask_stop() returns.
 */
static enum hrtimer_restart psp_ask_timer(struct hrtimer *timer)
{
	struct psp_qdisc *q = container_of(timer, struct psp_qdisc, ask_timer);
	struct sk_buff *dropped;
	u32 most;
	bool ready;

	rcu_read_lock();
	spin_lock(qdisc_lock(q->sch));
	most = min_t(u32, q->ask_left, PSP_ASK_IDLE);
	ready = psp_ask_some(q, most, ktime_get_ns());
	q->ask_left = min(q->ask_left - most, q->throttled_count);
	if (q->ask_left)
		psp_ask_set_timer(q);
	/* The root may not run for long: nobody else would free them. */
	dropped = psp_take_dropped(q->sch);
	spin_unlock(qdisc_lock(q->sch));
	psp_free_dropped(q->sch, dropped);
	if (ready)
		__netif_schedule(qdisc_root(q->sch));
	rcu_read_unlock();
	return HRTIMER_NORESTART;
}

void psp_ask_init(struct psp_qdisc *q)
{
	INIT_LIST_HEAD(&q->throttled);
	psp_hrtimer_setup(&q->ask_timer, psp_ask_timer,
			  HRTIMER_MODE_REL_PINNED_SOFT);
}

/* Without the root lock, which the timer takes. */
void psp_ask_stop(struct psp_qdisc *q)
{
	hrtimer_cancel(&q->ask_timer);
}
