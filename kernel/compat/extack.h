/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Refusals with values in their text.  Where the kernel only takes constant
 * texts, the words stand in a small ring of buffers: netlink copies them out
 * shortly after the request, and requests are serialised by the RTNL.
 *
 * The kernel keeps NETLINK_MAX_FMTMSG_LEN (80) characters.
 */
#ifndef PSP_COMPAT_EXTACK_H
#define PSP_COMPAT_EXTACK_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#ifdef NL_SET_ERR_MSG_FMT
#define psp_refuse(extack, fmt, ...) \
	NL_SET_ERR_MSG_FMT(extack, "psp: " fmt, ##__VA_ARGS__)
#else
#define PSP_REFUSAL_LEN		80
#define PSP_REFUSALS	8	/* requests whose text is still to be copied */

static inline char *psp_refusal_buffer(void)
{
	static char text[PSP_REFUSALS][PSP_REFUSAL_LEN];
	static unsigned int next;

	ASSERT_RTNL();
	return text[next++ % PSP_REFUSALS];
}

#define psp_refuse(extack, fmt, ...) do {				\
	struct netlink_ext_ack *__refused = (extack);			\
									\
	if (__refused) {						\
		char *__text = psp_refusal_buffer();			\
									\
		snprintf(__text, PSP_REFUSAL_LEN, "psp: " fmt,		\
			 ##__VA_ARGS__);				\
		__refused->_msg = __text;				\
	}								\
} while (0)
#endif

#endif
