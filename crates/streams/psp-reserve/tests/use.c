/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that reserves, as in psp_reserve.h: usage: use URL. It ends with the line of the
 * first check that fails, or 0.
 */
#include <psp_reserve.h>
#include <stdio.h>
#include <string.h>

/* What the library has (crates/streams/psp-reserve/src/lib.rs). */
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(struct psp_reserve_stream) == 72, "stream");
_Static_assert(offsetof(struct psp_reserve_stream, bytes) == 40, "bytes");
_Static_assert(offsetof(struct psp_reserve_stream, lease_ns) == 64, "lease");
_Static_assert(sizeof(struct psp_reserve_grant) == 96, "grant");
_Static_assert(offsetof(struct psp_reserve_grant, in_force) == 65, "in_force");
_Static_assert(offsetof(struct psp_reserve_grant, expires_in_ns) == 88, "expires");
#endif
_Static_assert(sizeof(enum psp_reserve_status) == sizeof(int), "status");

#define SECOND 1000000000ull

static char error[200];

#define CHECK(is_so)                                                                          \
	do {                                                                                  \
		if (!(is_so)) {                                                               \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #is_so, error);        \
			return 1;                                                             \
		}                                                                             \
	} while (0)

int main(int argc, char **argv)
{
	const char *const to[] = { "b" };
	struct psp_reserve_stream stream = {
		.id = "x",
		.from = "a",
		.to = to,
		.to_count = 1,
		.udp_to = "10.0.0.2:5004",
		.bytes = 1000,
		.period_ns = SECOND / 100,
		.lease_ns = 60 * SECOND,
	};
	struct psp_reserve_manager *manager, *nobody;
	struct psp_reserve_grant grant;
	char little[8];

	if (argc != 2)
		return 2;
	CHECK(!psp_reserve_open(NULL, NULL, NULL, error, sizeof(error)));
	CHECK(strstr(error, "`url` is NULL"));
	CHECK(!psp_reserve_open(argv[1], NULL, "no PEM", little, sizeof(little)));
	CHECK(strlen(little) == 7);
	manager = psp_reserve_open(argv[1], NULL, NULL, error, sizeof(error));
	CHECK(manager);

	/* Granted, the same twice, for longer, and released. */
	CHECK(psp_reserve(manager, &stream, &grant, error, sizeof(error)) == PSP_RESERVE_OK);
	CHECK(!strcmp(grant.id, "x") && grant.bound_ns == 18000000 && !grant.in_force);
	CHECK(grant.lease_ns == 60 * SECOND && grant.expires_in_ns <= 60 * SECOND);
	CHECK(psp_reserve(manager, &stream, &grant, NULL, 0) == PSP_RESERVE_OK);
	CHECK(psp_reserve_renew(manager, "x", 90 * SECOND, &grant, error, sizeof(error)) ==
	      PSP_RESERVE_OK);
	CHECK(grant.lease_ns == 90 * SECOND && grant.expires_in_ns > 60 * SECOND);
	CHECK(psp_reserve_renew(manager, "x", 0, &grant, error, sizeof(error)) == PSP_RESERVE_OK);
	CHECK(grant.lease_ns == 90 * SECOND);
	CHECK(psp_reserve_release(manager, "x", error, sizeof(error)) == PSP_RESERVE_OK);

	/* What ends otherwise, each with its sentence. */
	CHECK(psp_reserve(manager, &stream, &grant, error, sizeof(error)) == PSP_RESERVE_FAILED);
	CHECK(strstr(error, "x has ended"));
	CHECK(psp_reserve_renew(manager, "y", 0, &grant, error, sizeof(error)) ==
	      PSP_RESERVE_FAILED);
	stream.id = "y";
	stream.bytes = 1000000;
	CHECK(psp_reserve(manager, &stream, &grant, error, sizeof(error)) == PSP_RESERVE_REFUSED);
	CHECK(strstr(error, "link s has"));
	stream.bytes = 0;
	CHECK(psp_reserve(manager, &stream, &grant, error, sizeof(error)) == PSP_RESERVE_INVALID);
	CHECK(strstr(error, "`bytes-per-interval` is 0"));
	stream.udp_to = "nowhere";
	CHECK(psp_reserve(manager, &stream, &grant, error, sizeof(error)) == PSP_RESERVE_INVALID);
	CHECK(strstr(error, "`udp_to` is \"nowhere\""));
	stream.id = "../z";
	CHECK(psp_reserve(manager, &stream, &grant, error, sizeof(error)) == PSP_RESERVE_INVALID);
	CHECK(psp_reserve(manager, NULL, &grant, error, sizeof(error)) == PSP_RESERVE_INVALID);
	CHECK(psp_reserve(manager, &stream, NULL, error, sizeof(error)) == PSP_RESERVE_INVALID);
	CHECK(psp_reserve(NULL, &stream, &grant, error, sizeof(error)) == PSP_RESERVE_INVALID);
	CHECK(psp_reserve_release(manager, "a/b", error, sizeof(error)) == PSP_RESERVE_INVALID);

	/* Nobody listens there. */
	nobody = psp_reserve_open("http://127.0.0.1:9", NULL, NULL, error, sizeof(error));
	CHECK(nobody);
	CHECK(psp_reserve_release(nobody, "y", error, sizeof(error)) == PSP_RESERVE_NO_ANSWER);
	psp_reserve_close(nobody);
	psp_reserve_close(manager);
	psp_reserve_close(NULL);
	return 0;
}
