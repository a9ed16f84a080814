/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parses and formats rates and sizes as tc(8) writes them, in exact integers: a
 * conversion through floating point or bytes per second would change a rate.
 */
#ifndef PSP_QUANTITY_H
#define PSP_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Parses a rate: "500mbit", "1.5gbit", "100", "10kbps" (bytes).  Returns false
 * if it is not a rate, not a whole number of bit/s, or does not fit 64 bits.
 */
bool psp_parse_rate(const char *text, uint64_t *rate_bps);

/* Parses a size: "1500", "1500b", "3kb".  The result is in bytes. */
bool psp_parse_size(const char *text, uint64_t *bytes);

/*
 * Parses a time: "10ms", "500us", "2s".  A number alone is in microseconds, as
 * in tc. The result is in ns.
 */
bool psp_parse_time(const char *text, uint64_t *time_ns);

/* Parses a number of digits only, in the given base. */
bool psp_parse_number(const char *text, int base, uint64_t *value);

#define PSP_QUANTITY_TEXT	32
/*
 * Formats a rate in its shortest exact form, which psp_parse_rate() reads:
 * "500Mbit".
 */
const char *psp_rate_text(char text[PSP_QUANTITY_TEXT], uint64_t rate_bps);
/* Does the same for a time: "1500us". */
const char *psp_time_text(char text[PSP_QUANTITY_TEXT], uint64_t time_ns);

#endif
