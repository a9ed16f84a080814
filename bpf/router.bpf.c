// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decides which frames of a device `pspacer router` receives: IPv4 frames to
 * the device's MAC address, but to none of this host's IP addresses, go to the
 * router's AF_XDP socket. The kernel receives all other frames: ARP, IPv6, the
 * host's own. It receives all frames of a queue without a socket.
 */
#include "helpers.h"

char LICENSE[] SEC("license") = "GPL";

/* linux/bpf.h */
enum {
	XDP_PASS = 2,
};

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

/* The first headers of an IPv4 frame. */
struct start {
	u8 to_mac[6];
	u8 from_mac[6];
	u8 protocol[2];
	u8 before[16];
	u8 to_address[4];
};

/* The MAC address of the device; set before the program is loaded. */
const volatile u8 mac[6];

/* The AF_XDP sockets by receive queue: devices have one queue. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_XSKMAP);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
	MAP_NUMBER(max_entries, 1);
} sockets SEC(".maps");

struct address {
	u8 bytes[4];
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_TYPE(key, struct address);
	MAP_TYPE(value, u8);
	MAP_NUMBER(max_entries, 4096);
} own_addresses SEC(".maps");

INLINE int is_to_mac(const struct start *start)
{
	u8 different = 0;

	for (int i = 0; i < 6; i++)
		different |= start->to_mac[i] ^ mac[i];
	return !different;
}

SEC("xdp")
int to_router(struct xdp_md *ctx)
{
	const struct start *start = (void *)(long)ctx->data;
	/*
	 * Two, of which the first is used: a whole slot of the stack.  Without
	 * CAP_PERFMON Linux 6.1 refuses to write a part of a slot whose other part
	 * the compiler has given to a register.
	 */
	struct address to[2] __attribute__((aligned(8)));

	if ((void *)(start + 1) > (void *)(long)ctx->data_end)
		return XDP_PASS;
	if (!is_to_mac(start) || start->protocol[0] != 0x08 || start->protocol[1] != 0x00)
		return XDP_PASS;
	__builtin_memcpy(to, start->to_address, sizeof(to[0]));
	if (bpf_map_lookup_elem(&own_addresses, to))
		return XDP_PASS;
	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}
