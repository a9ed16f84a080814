// SPDX-License-Identifier: GPL-2.0-only
#include "quantity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *suffix;
	uint64_t scale;
};

#define KI	1024ull
#define BYTE	8ull	/* "bps" means bytes per second to tc */

static const struct unit rate_units[] = {
	{ "", 1 },
	{ "bit", 1 },
	{ "kbit", 1000ull },
	{ "mbit", 1000000ull },
	{ "gbit", 1000000000ull },
	{ "tbit", 1000000000000ull },
	{ "kibit", KI },
	{ "mibit", KI * KI },
	{ "gibit", KI * KI * KI },
	{ "tibit", KI * KI * KI * KI },
	{ "bps", BYTE },
	{ "kbps", BYTE * 1000 },
	{ "mbps", BYTE * 1000000 },
	{ "gbps", BYTE * 1000000000 },
	{ "tbps", BYTE * 1000000000000 },
	{ "kibps", BYTE * KI },
	{ "mibps", BYTE * KI * KI },
	{ "gibps", BYTE * KI * KI * KI },
	{ "tibps", BYTE * KI * KI * KI * KI },
	{ NULL, 0 },
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", KI },
	{ "kb", KI },
	{ "m", KI * KI },
	{ "mb", KI * KI },
	{ NULL, 0 },
};

static const struct unit time_units[] = {
	{ "", 1000ull },
	{ "ns", 1 },
	{ "nsec", 1 },
	{ "nsecs", 1 },
	{ "us", 1000ull },
	{ "usec", 1000ull },
	{ "usecs", 1000ull },
	{ "ms", 1000000ull },
	{ "msec", 1000000ull },
	{ "msecs", 1000000ull },
	{ "s", 1000000000ull },
	{ "sec", 1000000000ull },
	{ "secs", 1000000000ull },
	{ NULL, 0 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Parses `.digits` of a unit of *scale.  The result must be a whole number.
 * Trailing zeros are ignored, so that 1.50 is 1.5.
 */
static bool parse_fraction(const char **text, uint64_t scale, uint64_t *part)
{
	const char *c = *text, *end = c;

	while (is_digit(*end))
		end++;
	if (end == c)
		return false;
	*text = end;
	while (end > c && end[-1] == '0')
		end--;

	*part = 0;
	for (; c < end; c++) {
		uint64_t piece;

		if (scale % 10)
			return false;
		scale /= 10;
		if (__builtin_mul_overflow(scale, (uint64_t)(*c - '0'),
					   &piece) ||
		    __builtin_add_overflow(*part, piece, part))
			return false;
	}
	return true;
}

static bool parse_scaled(const char *text, const struct unit *units,
			 uint64_t *value)
{
	size_t number = strspn(text, "0123456789.");
	uint64_t whole = 0, part = 0;
	const struct unit *unit;
	const char *c = text;

	for (unit = units; unit->suffix; unit++)
		if (!strcasecmp(unit->suffix, text + number))
			break;
	if (!unit->suffix || !is_digit(*c))
		return false;

	for (; is_digit(*c); c++)
		if (__builtin_mul_overflow(whole, 10ull, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*c - '0'),
					   &whole))
			return false;
	if (*c == '.') {
		c++;
		if (!parse_fraction(&c, unit->scale, &part))
			return false;
	}
	return c == text + number &&
	       !__builtin_mul_overflow(whole, unit->scale, &whole) &&
	       !__builtin_add_overflow(whole, part, value);
}

bool psp_parse_rate(const char *text, uint64_t *rate_bps)
{
	return parse_scaled(text, rate_units, rate_bps);
}

bool psp_parse_size(const char *text, uint64_t *bytes)
{
	return parse_scaled(text, size_units, bytes);
}

bool psp_parse_time(const char *text, uint64_t *time_ns)
{
	return parse_scaled(text, time_units, time_ns);
}

bool psp_parse_number(const char *text, int base, uint64_t *value)
{
	char *end;

	/* strtoull() would accept blanks and signs. */
	if (strspn(text, "0123456789abcdefABCDEFxX") != strlen(text) ||
	    !*text)
		return false;
	errno = 0;
	*value = strtoull(text, &end, base);
	return !errno && !*end;
}

/*
 * Formats a value in the largest unit, in steps of 1000, that needs no
 * fraction.
 */
static const char *show_scaled(char text[PSP_QUANTITY_TEXT], uint64_t value,
			       const char *const *unit, unsigned int last)
{
	unsigned int i = 0;

	while (value && value % 1000 == 0 && i < last) {
		value /= 1000;
		i++;
	}
	snprintf(text, PSP_QUANTITY_TEXT, "%" PRIu64 "%s", value, unit[i]);
	return text;
}

const char *psp_rate_text(char text[PSP_QUANTITY_TEXT], uint64_t rate_bps)
{
	static const char *const unit[] = {
		"bit", "Kbit", "Mbit", "Gbit", "Tbit"
	};

	return show_scaled(text, rate_bps, unit, 4);
}

const char *psp_time_text(char text[PSP_QUANTITY_TEXT], uint64_t time_ns)
{
	static const char *const unit[] = { "ns", "us", "ms", "s" };

	return show_scaled(text, time_ns, unit, 3);
}
