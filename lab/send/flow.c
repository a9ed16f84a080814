// SPDX-License-Identifier: GPL-2.0-only
/* Parses a flow's description. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow.h"

bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return !errno && !*end && *number >= min && *number <= max;
}

/* Parses ADDR:PORT or, if @any, :PORT. */
static bool parse_address(char *text, bool any, struct sockaddr_in *address)
{
	char *colon = strrchr(text, ':');
	uint64_t port;

	if (!colon || !parse_number(colon + 1, 1, 65535, &port))
		return false;
	*colon = '\0';
	address->sin_family = AF_INET;
	address->sin_port = htons(port);
	if (!*text)
		return any;
	return inet_pton(AF_INET, text, &address->sin_addr) == 1;
}

/* Parses a name of characters that need no escape in JSON. */
static bool parse_name(const char *text, char *name, long max)
{
	const char *p;

	for (p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-#", *p))
			return false;
	if (p == text || p - text >= max)
		return false;
	strcpy(name, text);
	return true;
}

static bool parse_time(const char *text, int64_t *ns)
{
	uint64_t number;

	if (!parse_number(text, 0, INT64_MAX / 4, &number))
		return false;
	*ns = number;
	return true;
}

/* Parses a class as tc writes it: MAJOR:MINOR, hexadecimal. */
static bool parse_class(const char *text, uint32_t *class)
{
	unsigned int major, minor;
	char rest;

	if (sscanf(text, "%4x:%4x%c", &major, &minor, &rest) != 2 || !major || !minor)
		return false;
	*class = major << 16 | minor;
	return true;
}

/* Parses the clock of launch times, and whether they are deadlines. */
static bool parse_txtime(struct flow_spec *flow, const char *text)
{
	size_t clock = strcspn(text, "-");

	flow->txtime = true;
	flow->deadline = !strcmp(text + clock, "-deadline");
	if (text[clock] && !flow->deadline)
		return false;
	if (clock == 9 && !strncmp(text, "monotonic", clock))
		flow->clock = CLOCK_MONOTONIC;
	else if (clock == 3 && !strncmp(text, "tai", clock))
		flow->clock = CLOCK_TAI;
	else if (clock == 4 && !strncmp(text, "real", clock))
		flow->clock = CLOCK_REALTIME;
	else
		return false;
	return true;
}

/* Parses a lead: below 0, the launch time has passed when the datagram is sent. */
static bool parse_lead(const char *text, int64_t *ns)
{
	bool past = *text == '-';

	if (!parse_time(text + past, ns))
		return false;
	if (past)
		*ns = -*ns;
	return true;
}

static bool parse_udp(struct flow_spec *flow, const char *key, char *value)
{
	if (!strcmp(key, "payload"))
		return parse_number(value, FLOW_HEADER, FLOW_BYTES_MAX, &flow->payload);
	if (!strcmp(key, "batch"))
		return parse_number(value, 1, FLOW_BATCH_MAX, &flow->batch);
	if (!strcmp(key, "class"))
		return parse_class(value, &flow->class);
	if (!strcmp(key, "classes"))
		return parse_number(value, 1, FLOW_CLASSES_MAX, &flow->classes);
	if (!strcmp(key, "ports"))
		return parse_number(value, 1, FLOW_CLASSES_MAX, &flow->ports);
	if (!strcmp(key, "sockets"))
		return parse_number(value, 1, FLOW_SOCKETS_MAX, &flow->sockets);
	if (!strcmp(key, "turn"))
		return parse_number(value, 1, INT64_MAX / 4 / FLOW_SOCKETS_MAX, &flow->turn_ns);
	if (!strcmp(key, "ahead"))
		return parse_number(value, 0, UINT32_MAX, &flow->ahead);
	if (!strcmp(key, "slack"))
		return parse_number(value, 0, 1000000000, &flow->slack_ns);
	if (!strcmp(key, "txtime"))
		return parse_txtime(flow, value);
	if (!strcmp(key, "lead"))
		return parse_lead(value, &flow->lead_ns);
	if (!strcmp(key, "jitter"))
		return parse_number(value, 0, 1000000000, &flow->jitter_ns);
	if (!strcmp(key, "rate")) {
		flow->rate_bps = 0;
		return !strcmp(value, "max") ||
		       parse_number(value, 1, 1000000000000ULL, &flow->rate_bps);
	}
	return false;
}

static bool parse_tcp(struct flow_spec *flow, const char *key, char *value)
{
	if (!strcmp(key, "congestion"))
		return parse_name(value, flow->congestion, FLOW_CONGESTION_MAX);
	if (!strcmp(key, "window"))
		return parse_number(value, 1, INT32_MAX, &flow->window);
	if (!strcmp(key, "sample"))
		return parse_number(value, 1000000, INT64_MAX / 4, &flow->sample_ns);
	if (!strcmp(key, "message"))
		return parse_number(value, 1, 1 << 30, &flow->message);
	if (!strcmp(key, "every"))
		return parse_number(value, 1, INT64_MAX / 4, &flow->every_ns);
	return false;
}

static bool parse_pair(struct flow_spec *flow, const char *key, char *value)
{
	if (!strcmp(key, "proto")) {
		flow->tcp = !strcmp(value, "tcp");
		return flow->tcp || !strcmp(value, "udp");
	}
	if (!strcmp(key, "to"))
		return parse_address(value, false, &flow->to);
	if (!strcmp(key, "from"))
		return parse_address(value, true, &flow->from);
	if (!strcmp(key, "name"))
		return parse_name(value, flow->name, FLOW_NAME_MAX);
	if (!strcmp(key, "pacing"))
		return parse_number(value, 8, 1000000000000ULL, &flow->pacing_bps);
	if (!strcmp(key, "start"))
		return parse_time(value, &flow->start_ns);
	if (!strcmp(key, "stop"))
		return parse_time(value, &flow->stop_ns);
	return flow->tcp ? parse_tcp(flow, key, value) : parse_udp(flow, key, value);
}

bool flow_parse(struct flow_spec *flow, size_t index, char *text, char *why, size_t why_size)
{
	char *word, *value;

	memset(flow, 0, sizeof(*flow));
	snprintf(flow->name, sizeof(flow->name), "flow-%zu", index);
	flow->payload = 1472;
	flow->batch = 1;
	flow->classes = 1;
	flow->ports = 1;
	flow->sockets = 1;
	flow->lead_ns = 1000000;
	flow->start_ns = flow->stop_ns = -1;
	while ((word = strsep(&text, ","))) {
		value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		if (!value || !parse_pair(flow, word, value)) {
			snprintf(why, why_size, "'%s=%s' is not a part of a flow",
				 word, value ? value : "");
			return false;
		}
	}
	if (!flow->to.sin_port) {
		snprintf(why, why_size, "%s: to=ADDR:PORT is missing", flow->name);
		return false;
	}
	if ((flow->class & 0xffff) + flow->classes - 1 > FLOW_CLASSES_MAX ||
	    (flow->classes > 1 && !flow->class)) {
		snprintf(why, why_size, "%s: classes count from class=MAJOR:MINOR up to MAJOR:ffff",
			 flow->name);
		return false;
	}
	if (ntohs(flow->to.sin_port) + flow->ports - 1 > 65535) {
		snprintf(why, why_size, "%s: ports beyond 65535", flow->name);
		return false;
	}
	if (flow->sockets > 1 && (!flow->turn_ns || !flow->from.sin_port)) {
		snprintf(why, why_size, "%s: sockets= asks for turn= and for a port in from=",
			 flow->name);
		return false;
	}
	if (flow->turn_ns && (flow->ports > 1 || flow->classes > 1 || flow->ahead || flow->txtime)) {
		snprintf(why, why_size, "%s: turn= takes none of ports=, classes=, ahead=, txtime=",
			 flow->name);
		return false;
	}
	if (!flow->message != !flow->every_ns) {
		snprintf(why, why_size, "%s: message= and every= ask for each other", flow->name);
		return false;
	}
	if (flow->txtime && (flow->ports > 1 || flow->batch > 1)) {
		snprintf(why, why_size, "%s: txtime= takes neither ports= nor batch=",
			 flow->name);
		return false;
	}
	if (flow->batch * flow->payload > FLOW_BYTES_MAX) {
		snprintf(why, why_size, "%s: batch x payload is more than %d bytes",
			 flow->name, FLOW_BYTES_MAX);
		return false;
	}
	return true;
}

int64_t flow_jitter_ns(const struct flow_spec *flow, uint64_t sequence)
{
	/* splitmix64 */
	uint64_t x = (sequence + 1) * 0x9e3779b97f4a7c15ULL;

	if (!flow->jitter_ns)
		return 0;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return (x ^ x >> 31) % flow->jitter_ns;
}
