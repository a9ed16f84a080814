// SPDX-License-Identifier: GPL-2.0-only
/* Rates and sizes, from text and back.  Prints TAP. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "quantity.h"

static int tests, failures;

static void report(bool good, const char *what, const char *text)
{
	tests++;
	failures += !good;
	printf("%sok %d - %s \"%s\"\n", good ? "" : "not ", tests, what, text);
}

static void rate_is(const char *text, uint64_t expected)
{
	uint64_t rate_bps = 0;
	bool good = psp_parse_rate(text, &rate_bps) && rate_bps == expected;

	report(good, "rate", text);
	if (!good)
		printf("# %" PRIu64 ", expected %" PRIu64 "\n", rate_bps,
		       expected);
}

static void no_rate(const char *text)
{
	uint64_t rate_bps;

	report(!psp_parse_rate(text, &rate_bps), "no rate", text);
}

static void size_is(const char *text, uint64_t expected)
{
	uint64_t bytes = 0;

	report(psp_parse_size(text, &bytes) && bytes == expected, "size", text);
}

static void time_is(const char *text, uint64_t expected)
{
	uint64_t time_ns = 0;

	report(psp_parse_time(text, &time_ns) && time_ns == expected, "time",
	       text);
}

static void no_time(const char *text)
{
	uint64_t time_ns;

	report(!psp_parse_time(text, &time_ns), "no time", text);
}

static void time_text_is(uint64_t time_ns, const char *expected)
{
	char text[PSP_QUANTITY_TEXT];
	uint64_t again = 0;

	psp_time_text(text, time_ns);
	report(!strcmp(text, expected) && psp_parse_time(text, &again) &&
	       again == time_ns, "text", expected);
}

static void text_is(uint64_t rate_bps, const char *expected)
{
	char text[PSP_QUANTITY_TEXT];
	uint64_t again = 0;

	psp_rate_text(text, rate_bps);
	report(!strcmp(text, expected) && psp_parse_rate(text, &again) &&
	       again == rate_bps, "text", expected);
}

int main(void)
{
	rate_is("0", 0);
	rate_is("1", 1);
	rate_is("8kbit", 8000);
	rate_is("500mbit", 500000000);
	rate_is("500Mbit", 500000000);
	rate_is("1.5gbit", 1500000000);
	rate_is("1.500000000gbit", 1500000000);
	rate_is("833333333bit", 833333333);
	rate_is("0.001kbit", 1);
	rate_is("400gbit", 400000000000);
	rate_is("1tbit", 1000000000000);
	rate_is("1kibit", 1024);
	rate_is("1bps", 8);
	rate_is("1.5kbps", 12000);
	rate_is("125mbps", 1000000000);
	rate_is("18446744073709551615", UINT64_MAX);

	no_rate("");
	no_rate("mbit");
	no_rate("-1");
	no_rate("+1");
	no_rate(" 1");
	no_rate("1 mbit");
	no_rate("1xbit");
	no_rate("1mbitx");
	no_rate("1.");
	no_rate(".5mbit");
	no_rate("1.5.0mbit");
	no_rate("0.5bit");
	no_rate("0.0001kbit");
	no_rate("1e6");
	no_rate("0x10");
	no_rate("nan");
	no_rate("18446744073709551616");
	no_rate("18446744073710tbit");

	size_is("1500", 1500);
	size_is("1500b", 1500);
	size_is("3kb", 3072);
	size_is("1m", 1048576);

	time_is("10ms", 10000000);
	time_is("1.5ms", 1500000);
	time_is("7", 7000);
	time_is("250usec", 250000);
	time_is("3s", 3000000000);
	time_is("0", 0);
	no_time("");
	no_time("-1ms");
	no_time("ms");
	no_time("1min");
	no_time("0.5ns");
	no_time("18446744074s");

	time_text_is(1, "1ns");
	time_text_is(1500000, "1500us");
	time_text_is(10000000, "10ms");
	time_text_is(60000000000, "60s");

	text_is(1, "1bit");
	text_is(833333333, "833333333bit");
	text_is(1500, "1500bit");
	text_is(8000, "8Kbit");
	text_is(500000000, "500Mbit");
	text_is(1500000000, "1500Mbit");
	text_is(10000000000, "10Gbit");
	text_is(1000000000000, "1Tbit");

	printf("1..%d\n", tests);
	return failures != 0;
}
