// SPDX-License-Identifier: GPL-2.0-only
/*
 * What core/ refused, in words: the key, its value and what was expected.
 * The kernel keeps 80 characters of a text.
 */
#include "psp.h"

/* The line, the device or an option that applies to all. */
int psp_refuse_port(struct netlink_ext_ack *extack, enum pace_error err,
		    const struct psp_port *port, const struct psp_class *cl)
{
	const struct pace_config *cfg = &port->pace;
	u32 id = cl ? cl->common.classid : 0;

	switch (err) {
	case PACE_ERR_LINE_RATE:
		psp_refuse(extack, "line %llubit: expected %llubit to %llubit",
			   cfg->line_rate_bps, PACE_LINE_RATE_MIN,
			   PACE_LINE_RATE_MAX);
		return -ERANGE;
	case PACE_ERR_FRAME:
		psp_refuse(extack, "MTU: frames of %u bytes: expected at most %u",
			   cfg->max_frame_bytes, PACE_FRAME_MAX);
		return -ERANGE;
	case PACE_ERR_OVERHEAD:
		psp_refuse(extack, "overhead %u: expected 0 to %u",
			   cfg->overhead_bytes, TC_PSP_OVERHEAD_MAX);
		return -ERANGE;
	case PACE_ERR_CEIL:
		psp_refuse(extack, "line %llubit: expected class %x:%x's ceil, %llubit, or more",
			   cfg->line_rate_bps, TC_H_MAJ(id) >> 16, TC_H_MIN(id),
			   cl ? cl->opt.ceil_bps : 0);
		return -ERANGE;
	case PACE_ERR_RATE_LINE:
		psp_refuse(extack, "line %llubit: expected class %x:%x's %llubit or more",
			   cfg->line_rate_bps, TC_H_MAJ(id) >> 16, TC_H_MIN(id),
			   cl ? cl->opt.rate_bps ?: cl->opt.ceil_bps : 0);
		return -ERANGE;
	case PACE_ERR_RATE_LOW:
		psp_refuse(extack, "class %x:%x: rate %llubit too low for a line of %llubit",
			   TC_H_MAJ(id) >> 16, TC_H_MIN(id),
			   cl ? cl->opt.rate_bps : 0, cfg->line_rate_bps);
		return -ERANGE;
	case PACE_ERR_PERIOD:
		psp_refuse(extack, "period %lluns: expected time for %u bytes at %llubit",
			   cfg->period_ns, cfg->max_frame_bytes,
			   cfg->line_rate_bps);
		return -ERANGE;
	case PACE_ERR_RESERVE:
	case PACE_ERR_RESERVED:
		psp_refuse(extack, "budget %llu: expected the %llu bytes that classes reserve",
			   cfg->budget_bytes, port->reserved_bytes);
		return -ERANGE;
	case PACE_ERR_BUDGET:
		psp_refuse(extack, "budget %llu: expected 1 to %llu bytes",
			   cfg->budget_bytes, PACE_BUDGET_MAX);
		return -ERANGE;
	default:
		psp_refuse(extack, "configuration refused by the scheduler (%d)",
			   err);
		return -EINVAL;
	}
}

/* What was asked for one class. */
int psp_refuse_class(struct netlink_ext_ack *extack, enum pace_error err,
		     const struct psp_port *port,
		     const struct psp_class_options *opt)
{
	switch (err) {
	case PACE_ERR_RATE_ZERO:
		psp_refuse(extack, "rate 0bit: expected 1bit or more");
		return -ERANGE;
	case PACE_ERR_RATE_LINE:
		psp_refuse(extack, "rate %llubit: expected at most the line's %llubit",
			   opt->rate_bps, port->pace.line_rate_bps);
		return -ERANGE;
	case PACE_ERR_RATE_LOW:
		psp_refuse(extack, "rate %llubit: expected more on a line of %llubit",
			   opt->rate_bps, port->pace.line_rate_bps);
		return -ERANGE;
	case PACE_ERR_CEIL:
		psp_refuse(extack, "ceil %llubit: expected %llubit (rate) to %llubit (line)",
			   opt->ceil_bps, opt->rate_bps,
			   port->pace.line_rate_bps);
		return -ERANGE;
	case PACE_ERR_QUANTUM:
		psp_refuse(extack, "quantum %u: expected %u to %u bytes",
			   opt->quantum_bytes, TC_PSP_QUANTUM_MIN,
			   TC_PSP_QUANTUM_MAX);
		return -ERANGE;
	case PACE_ERR_PERIOD:
	case PACE_ERR_BUDGET:
		return psp_refuse_port(extack, err, port, NULL);
	case PACE_ERR_RESERVE:
		psp_refuse(extack, "reserve %llu: expected 1 to %llu bytes (budget)",
			   opt->reserve_bytes, port->pace.budget_bytes);
		return -ERANGE;
	default:
		psp_refuse(extack, "class refused by the scheduler (%d)", err);
		return -EINVAL;
	}
}

/* Beside what others have, it is too much. */
int psp_refuse_reserve(struct netlink_ext_ack *extack,
		       const struct psp_qdisc *q, const struct psp_class *cl,
		       u64 reserve_bytes)
{
	psp_refuse(extack, "reserve %llu: others have %llu of the budget's %llu bytes",
		   reserve_bytes, pace_reserved_bytes(&q->pace, &cl->pace),
		   q->port.pace.budget_bytes);
	return -ERANGE;
}

#ifndef NL_SET_ERR_MSG_FMT
#define PSP_REFUSALS	8	/* requests whose text is still to be copied */

char *psp_refusal_buffer(void)
{
	static char text[PSP_REFUSALS][PSP_REFUSAL_LEN];
	static unsigned int next;

	ASSERT_RTNL();
	return text[next++ % PSP_REFUSALS];
}
#endif
