/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets extack texts that contain values.  For kernels that accept only constant
 * texts, a text is formatted into a small ring of buffers: netlink copies it
 * shortly after the request, and the RTNL serialises requests.
 *
 * The kernel keeps NETLINK_MAX_FMTMSG_LEN (80) characters.
 */
#ifndef PSP_COMPAT_EXTACK_H
#define PSP_COMPAT_EXTACK_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#ifdef NL_SET_ERR_MSG_FMT
#define psp_set_extack(extack, fmt, ...) \
	NL_SET_ERR_MSG_FMT(extack, "psp: " fmt, ##__VA_ARGS__)
#else
#define PSP_EXTACK_LEN		80
#define PSP_EXTACK_BUFFERS	8	/* texts that netlink has yet to copy */

static inline char *psp_extack_buffer(void)
{
	static char text[PSP_EXTACK_BUFFERS][PSP_EXTACK_LEN];
	static unsigned int next;

	ASSERT_RTNL();
	return text[next++ % PSP_EXTACK_BUFFERS];
}

#define psp_set_extack(extack, fmt, ...) do {				\
	struct netlink_ext_ack *__ack = (extack);			\
									\
	if (__ack) {						\
		char *__text = psp_extack_buffer();			\
									\
		snprintf(__text, PSP_EXTACK_LEN, "psp: " fmt,		\
			 ##__VA_ARGS__);				\
		__ack->_msg = __text;				\
	}								\
} while (0)
#endif

#endif
