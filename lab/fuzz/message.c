// SPDX-License-Identifier: GPL-2.0-only
/* Builds and sends rtnetlink messages and receives the answers. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <net/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "fuzz.h"

void message_tc(struct message *m, uint16_t type, uint16_t flags, int ifindex,
		uint32_t parent, uint32_t handle)
{
	struct tcmsg *t = NLMSG_DATA(&m->head);

	memset(m->bytes, 0, NLMSG_LENGTH(sizeof(*t)));
	m->head.nlmsg_type = type;
	m->head.nlmsg_flags = NLM_F_REQUEST | flags;
	m->head.nlmsg_len = NLMSG_LENGTH(sizeof(*t));
	m->options = 0;
	t->tcm_ifindex = ifindex;
	t->tcm_parent = parent;
	t->tcm_handle = handle;
}

/* Appends an attribute.  Omits one that does not fit. */
void message_put(struct message *m, uint16_t type, const void *data, size_t len)
{
	size_t at = NLMSG_ALIGN(m->head.nlmsg_len);
	struct nlattr *a = (struct nlattr *)(m->bytes + at);

	if (at + NLA_HDRLEN + NLA_ALIGN(len) > sizeof(m->bytes))
		return;
	memset(a, 0, NLA_HDRLEN + NLA_ALIGN(len));
	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	if (len)
		memcpy(m->bytes + at + NLA_HDRLEN, data, len);
	m->head.nlmsg_len = at + NLA_HDRLEN + NLA_ALIGN(len);
}

void message_put_text(struct message *m, uint16_t type, const char *text)
{
	message_put(m, type, text, strlen(text) + 1);
}

size_t message_nest(struct message *m, uint16_t type)
{
	size_t at = NLMSG_ALIGN(m->head.nlmsg_len);

	message_put(m, type | NLA_F_NESTED, NULL, 0);
	if (type == TCA_OPTIONS && !m->options)
		m->options = at;
	return at;
}

void message_nest_end(struct message *m, size_t at)
{
	((struct nlattr *)(m->bytes + at))->nla_len = m->head.nlmsg_len - at;
}

void message_link(struct message *m, int ifindex, bool up, uint32_t mtu)
{
	struct ifinfomsg *info = NLMSG_DATA(&m->head);

	memset(m->bytes, 0, NLMSG_LENGTH(sizeof(*info)));
	m->head.nlmsg_type = RTM_NEWLINK;
	m->head.nlmsg_flags = NLM_F_REQUEST;
	m->head.nlmsg_len = NLMSG_LENGTH(sizeof(*info));
	m->options = 0;
	info->ifi_index = ifindex;
	info->ifi_change = IFF_UP;
	info->ifi_flags = up ? IFF_UP : 0;
	if (mtu)
		message_put(m, IFLA_MTU, &mtu, sizeof(mtu));
}

int netlink_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * The kernel answers before send() returns, except for further parts of a dump.
 */
int netlink_ask(int fd, struct message *m,
		void (*each)(const struct nlmsghdr *n, void *arg), void *arg)
{
	static _Alignas(struct nlmsghdr) char answer[1 << 16];
	const struct nlmsgerr *verdict;
	int result = 0;
	ssize_t size;

	m->head.nlmsg_flags |= NLM_F_ACK;
	m->head.nlmsg_seq++;
	if (send(fd, m->bytes, m->head.nlmsg_len, 0) < 0)
		return errno;
	while ((size = recv(fd, answer, sizeof(answer), MSG_DONTWAIT)) > 0) {
		for (const struct nlmsghdr *n = (const void *)answer;
		     NLMSG_OK(n, size); n = NLMSG_NEXT(n, size)) {
			if (n->nlmsg_type == NLMSG_ERROR) {
				verdict = NLMSG_DATA(n);
				result = -verdict->error;
			} else if (n->nlmsg_type != NLMSG_DONE && each) {
				each(n, arg);
			}
		}
	}
	return result;
}
