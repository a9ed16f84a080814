/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rates and sizes as tc(8) writes them, in exact integers: a rate that went
 * through floating point or bytes per second would come back changed.
 */
#ifndef PSP_QUANTITY_H
#define PSP_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * "500mbit", "1.5gbit", "100", "10kbps" (bytes).  False: not a rate, not a
 * whole number of bit/s, or beyond 64 bits.
 */
bool psp_parse_rate(const char *text, uint64_t *rate_bps);

/* "1500", "1500b", "3kb": bytes. */
bool psp_parse_size(const char *text, uint64_t *bytes);

/* "10ms", "500us", "2s"; a number alone is microseconds, as to tc: ns. */
bool psp_parse_time(const char *text, uint64_t *time_ns);

/* Digits only, of the given base. */
bool psp_parse_number(const char *text, int base, uint64_t *value);

#define PSP_QUANTITY_TEXT	32
/* The shortest exact form, which psp_parse_rate() reads back: "500Mbit". */
const char *psp_rate_text(char text[PSP_QUANTITY_TEXT], uint64_t rate_bps);
/* The same for times: "1500us". */
const char *psp_time_text(char text[PSP_QUANTITY_TEXT], uint64_t time_ns);

#endif
