// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compares struct qdisc_util with that of the tc that loads the plugin.  No
 * header of iproute2 declares the structure, and a tc with another one would
 * call the plugin through the wrong members.  tc exports its own qdiscs, because
 * it looks them up by name like those of plugins: htb is in every tc, sets all
 * members but the last, and so shows where they are.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "psp.h"

/* NULL in a program that is not tc, as the tests are. */
extern struct qdisc_util htb_qdisc_util __attribute__((weak));

/* Returns the program or library that an address belongs to, or NULL. */
static const void *image_of(const void *address)
{
	Dl_info info;

	return address && dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* Returns the size of tc's structure, or 0 if the symbol has none. */
static size_t size_in_tc(const struct qdisc_util *util)
{
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (!dladdr1(util, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
		return 0;
	return symbol->st_size;
}

/*
 * Each word is read as what it must be only after its size and its image fit, so
 * that a structure of any other form is compared without a wild access.
 */
static bool matches(const struct qdisc_util *util, size_t size)
{
	const void *image = image_of(util);
	const void *words[sizeof(*util) / sizeof(void *)];
	size_t i;

	if (size != sizeof(*util))
		return false;
	memcpy(words, util, sizeof(words));
	for (i = offsetof(struct qdisc_util, id) / sizeof(void *);
	     i < offsetof(struct qdisc_util, has_block) / sizeof(void *); i++)
		if (!image || image_of(words[i]) != image)
			return false;
	return !util->has_block && strncmp(util->id, "htb", 4) == 0;
}

/* Runs when tc loads the plugin, before tc looks up psp_qdisc_util. */
__attribute__((constructor)) static void match(void)
{
	const struct qdisc_util *util = &htb_qdisc_util;
	size_t size;

	if (!util)
		return;
	size = size_in_tc(util);
	if (matches(util, size))
		return;
	fprintf(stderr,
		"psp: this tc has another struct qdisc_util (%zu bytes, expected %zu as in iproute2 5.9 to 7): install the q_psp.so that is made for its version\n",
		size, sizeof(*util));
	exit(1);
}
