// SPDX-License-Identifier: GPL-2.0-only
/* The sender's description of a flow. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "../send/flow.h"
#include "check.h"

static bool parse(struct flow_spec *flow, const char *text, char *why, size_t size)
{
	char *copy = strdup(text);
	bool ok = flow_parse(flow, 3, copy, why, size);

	free(copy);
	return ok;
}

static void refused(const char *text, const char *reason)
{
	struct flow_spec flow;
	char why[256] = "";

	CHECK(!parse(&flow, text, why, sizeof(why)), "'%s' was taken", text);
	CHECK(!strcmp(why, reason), "'%s' says: %s", text, why);
}

static void test_defaults(void)
{
	struct flow_spec flow;
	char why[256] = "";

	CHECK(parse(&flow, "to=10.1.2.1:5001", why, sizeof(why)), "%s", why);
	CHECK(flow.to.sin_addr.s_addr == htonl(0x0a010201) && flow.to.sin_port == htons(5001), "to");
	CHECK(!strcmp(flow.name, "flow-3") && flow.payload == 1472 && flow.batch == 1 &&
	      !flow.rate_bps && flow.start_ns == -1 && flow.stop_ns == -1 &&
	      !flow.from.sin_port, "defaults");
}

static void test_all_keys(void)
{
	struct flow_spec flow;
	char why[256] = "";

	CHECK(parse(&flow, "to=1.2.3.4:1,from=5.6.7.8:65535,name=a.b-c_d#2,payload=16,batch=64,"
		    "rate=1000000,pacing=8,start=0,stop=123456789012", why, sizeof(why)), "%s", why);
	CHECK(flow.from.sin_addr.s_addr == htonl(0x05060708) &&
	      flow.from.sin_port == htons(65535), "from");
	CHECK(!strcmp(flow.name, "a.b-c_d#2") && flow.payload == 16 && flow.batch == 64 &&
	      flow.rate_bps == 1000000 && flow.pacing_bps == 8 && flow.start_ns == 0 &&
	      flow.stop_ns == 123456789012, "values");
	CHECK(parse(&flow, "to=1.2.3.4:1,from=:7,rate=max", why, sizeof(why)), "%s", why);
	CHECK(flow.from.sin_addr.s_addr == INADDR_ANY && flow.from.sin_port == htons(7) &&
	      !flow.rate_bps, "from any");
}

static void test_txtime(void)
{
	struct flow_spec flow;
	char why[256] = "";

	CHECK(parse(&flow, "to=1.2.3.4:1,txtime=tai-deadline,lead=5", why, sizeof(why)), "%s", why);
	CHECK(flow.txtime && flow.deadline && flow.clock == CLOCK_TAI && flow.lead_ns == 5, "tai");
	CHECK(parse(&flow, "to=1.2.3.4:1,txtime=tai,jitter=9", why, sizeof(why)) &&
	      flow.jitter_ns == 9, "%s", why);
	CHECK(parse(&flow, "to=1.2.3.4:1,txtime=monotonic,lead=-7", why, sizeof(why)), "%s", why);
	CHECK(flow.txtime && !flow.deadline && flow.clock == CLOCK_MONOTONIC &&
	      flow.lead_ns == -7, "monotonic");
	CHECK(parse(&flow, "to=1.2.3.4:1,txtime=real", why, sizeof(why)) &&
	      flow.clock == CLOCK_REALTIME && flow.lead_ns == 1000000, "%s", why);
	refused("to=1.2.3.4:1,txtime=utc", "'txtime=utc' is not a part of a flow");
	refused("to=1.2.3.4:1,txtime=tai-strict", "'txtime=tai-strict' is not a part of a flow");
	refused("to=1.2.3.4:1,lead=-", "'lead=-' is not a part of a flow");
	refused("name=a,to=1.2.3.4:1,txtime=tai,batch=2", "a: txtime= takes neither ports= nor batch=");
}

static void test_tcp(void)
{
	struct flow_spec flow;
	char why[256] = "";

	CHECK(parse(&flow, "to=1.2.3.4:1,proto=tcp,congestion=bbr,window=26214400,"
		    "pacing=450000000,sample=100000000,start=5", why, sizeof(why)), "%s", why);
	CHECK(flow.tcp && !strcmp(flow.congestion, "bbr") && flow.window == 26214400 &&
	      flow.pacing_bps == 450000000 && flow.sample_ns == 100000000 &&
	      flow.start_ns == 5, "values");
	CHECK(parse(&flow, "proto=tcp,to=1.2.3.4:1,message=1000,every=20", why, sizeof(why)) &&
	      flow.message == 1000 && flow.every_ns == 20, "%s", why);
	refused("name=a,proto=tcp,to=1.2.3.4:1,message=1000",
		"a: message= and every= ask for each other");
	CHECK(parse(&flow, "proto=udp,to=1.2.3.4:1,payload=100", why, sizeof(why)) &&
	      !flow.tcp, "%s", why);
	refused("to=1.2.3.4:1,proto=sctp", "'proto=sctp' is not a part of a flow");
	refused("to=1.2.3.4:1,proto=tcp,payload=100", "'payload=100' is not a part of a flow");
	refused("to=1.2.3.4:1,congestion=bic", "'congestion=bic' is not a part of a flow");
	refused("to=1.2.3.4:1,proto=tcp,congestion=longer-than-names-are",
		"'congestion=longer-than-names-are' is not a part of a flow");
	refused("to=1.2.3.4:1,proto=tcp,sample=999999", "'sample=999999' is not a part of a flow");
}

static void test_spread(void)
{
	struct flow_spec flow;
	char why[256] = "";

	CHECK(parse(&flow, "to=1.2.3.4:5000,class=1:a,classes=100,ports=7", why, sizeof(why)) &&
	      flow.class == 0x1000a && flow.classes == 100 && flow.ports == 7, "%s", why);
	CHECK(parse(&flow, "to=1.2.3.4:5000,class=ffff:1,classes=65535", why, sizeof(why)),
	      "%s", why);
	refused("to=1.2.3.4:1,class=1:2,classes=65535",
		"flow-3: classes count from class=MAJOR:MINOR up to MAJOR:ffff");
	refused("to=1.2.3.4:1,classes=2",
		"flow-3: classes count from class=MAJOR:MINOR up to MAJOR:ffff");
	refused("to=1.2.3.4:65535,ports=2", "flow-3: ports beyond 65535");
	refused("to=1.2.3.4:1,class=1:", "'class=1:' is not a part of a flow");
	refused("to=1.2.3.4:1,class=0:1", "'class=0:1' is not a part of a flow");
	refused("to=1.2.3.4:1,class=1:1x", "'class=1:1x' is not a part of a flow");
}

static void test_turns(void)
{
	struct flow_spec flow;
	char why[256] = "";

	CHECK(parse(&flow, "to=1.2.3.4:1,from=:7,sockets=16,turn=1000000", why, sizeof(why)) &&
	      flow.sockets == 16 && flow.turn_ns == 1000000, "%s", why);
	refused("name=a,to=1.2.3.4:1,from=:7,sockets=2",
		"a: sockets= asks for turn= and for a port in from=");
	refused("name=a,to=1.2.3.4:1,sockets=2,turn=5",
		"a: sockets= asks for turn= and for a port in from=");
	refused("name=a,to=1.2.3.4:1,from=:7,sockets=2,turn=5,ports=2",
		"a: turn= takes none of ports=, classes=, ahead=, txtime=");
	refused("to=1.2.3.4:1,sockets=65,turn=5", "'sockets=65' is not a part of a flow");
}

static void test_refusals(void)
{
	refused("", "'=' is not a part of a flow");
	refused("payload=100", "flow-3: to=ADDR:PORT is missing");
	refused("to=10.1.2.1", "'to=10.1.2.1' is not a part of a flow");
	refused("to=:5001", "'to=' is not a part of a flow");
	refused("to=10.1.2.1:0", "'to=10.1.2.1:0' is not a part of a flow");
	refused("to=1.2.3.4:1,payload=15", "'payload=15' is not a part of a flow");
	refused("to=1.2.3.4:1,payload=1e3", "'payload=1e3' is not a part of a flow");
	refused("to=1.2.3.4:1,batch=65", "'batch=65' is not a part of a flow");
	refused("to=1.2.3.4:1,batch=64,payload=1472",
		"flow-3: batch x payload is more than 65507 bytes");
	refused("to=1.2.3.4:1,name=a\"b", "'name=a\"b' is not a part of a flow");
	refused("to=1.2.3.4:1,rate=0", "'rate=0' is not a part of a flow");
	refused("to=1.2.3.4:1,pacing=7", "'pacing=7' is not a part of a flow");
	refused("to=1.2.3.4:1,speed=1", "'speed=1' is not a part of a flow");
	refused("to=1.2.3.4:1,stop=-1", "'stop=-1' is not a part of a flow");
}

int main(void)
{
	test_defaults();
	test_all_keys();
	test_txtime();
	test_tcp();
	test_spread();
	test_turns();
	test_refusals();
	return check_result("flow");
}
