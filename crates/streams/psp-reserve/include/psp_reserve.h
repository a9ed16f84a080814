/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Asks a bandwidth manager for reservations (docs/use/reservations.md). Calls block for as long
 * as the manager takes to answer. A manager may be used by one thread at a time; several
 * may be open. Every function writes a sentence into `error` when it does not return
 * PSP_RESERVE_OK, cut to `error_size` bytes with the final 0; `error` may be NULL.
 */
#ifndef PSP_RESERVE_H
#define PSP_RESERVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest id, with the final 0. */
#define PSP_RESERVE_ID 65

enum psp_reserve_status {
	PSP_RESERVE_OK = 0,
	/* The stream does not fit. */
	PSP_RESERVE_REFUSED = 1,
	/* An argument, or what it says, is not valid. */
	PSP_RESERVE_INVALID = 2,
	/* The manager does not answer. psp_reserve() may be called again with the same id. */
	PSP_RESERVE_NO_ANSWER = 3,
	/* The manager does not do it: the error says why. */
	PSP_RESERVE_FAILED = 4,
};

struct psp_reserve_manager;

/* A stream. All strings are UTF-8 and end with a 0. */
struct psp_reserve_stream {
	/* Of the request: the same id again has the same answer. 1 to 64 letters, digits, ".", "_"
	 * and "-", of which the first is a letter, digit or "_". Also the stream's name in the
	 * network. */
	const char *id;
	/* The host that sends. */
	const char *from;
	/* The hosts that receive. */
	const char *const *to;
	size_t to_count;
	/* The stream's frames, UDP to this: "10.0.0.2:5004" or "[2001:db8::2]:5004"; NULL: not
	 * said, and no agent gives them a class. */
	const char *udp_to;
	/* UDP payload in each period, in datagrams that fill the MTU. */
	uint32_t bytes;
	uint64_t period_ns;
	/* Longest delay that is of use; 0: any. */
	uint64_t latency_ns;
	uint64_t lease_ns;
};

/* A reservation. */
struct psp_reserve_grant {
	char id[PSP_RESERVE_ID];
	/* 1 if all nodes that send the stream keep to it. */
	uint8_t in_force;
	/* Longest delay of a packet to any receiver. */
	uint64_t bound_ns;
	/* Length of the lease. */
	uint64_t lease_ns;
	/* Time until it ends. */
	uint64_t expires_in_ns;
};

/*
 * Opens a manager by its URL. `token` and `ca`, PEM of the authority of its certificate, may be
 * NULL. Nothing is sent yet. Returns NULL if the certificate or an argument is not valid.
 */
struct psp_reserve_manager *psp_reserve_open(const char *url, const char *token, const char *ca,
					     char *error, size_t error_size);

/* Closes a manager; NULL is no manager. What is reserved stays. */
void psp_reserve_close(struct psp_reserve_manager *manager);

/* Reserves. `grant` is written if PSP_RESERVE_OK is returned. */
enum psp_reserve_status psp_reserve(struct psp_reserve_manager *manager,
				    const struct psp_reserve_stream *stream,
				    struct psp_reserve_grant *grant, char *error,
				    size_t error_size);

/* Begins the lease of a reservation anew; `lease_ns` 0: as long as before. */
enum psp_reserve_status psp_reserve_renew(struct psp_reserve_manager *manager, const char *id,
					  uint64_t lease_ns, struct psp_reserve_grant *grant,
					  char *error, size_t error_size);

/* Frees a reservation. */
enum psp_reserve_status psp_reserve_release(struct psp_reserve_manager *manager, const char *id,
					    char *error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
