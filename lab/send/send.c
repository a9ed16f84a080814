// SPDX-License-Identifier: GPL-2.0-only
/*
 * psp-send: sends UDP flows, at a rate or as fast as their sockets accept them,
 * and TCP flows. One process serves all flows in round robin, one system call
 * each, and sleeps in epoll while every flow waits for its time or for room in
 * its socket.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "flow.h"
#include "sampler.h"
#include "tcp.h"
#include "txtime.h"
#include "user.h"

#define NSEC_PER_SEC	1000000000LL
#define EVENTS_MAX	64
/* Rounds after which psp-send polls for sockets that have room again. */
#define TURNS_MAX	16
/* A report comes at most so long after the launch time. */
#define REPORT_NS	5000000LL

#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif

struct flow {
	struct flow_spec spec;
	uint64_t socket;		/* its number among those of one SPEC, from 0 */
	int fd;
	bool waits_for_room, ended;
	int64_t begin_ns;		/* of the flow; absolute, as all below */
	int64_t next_ns;		/* time of the next call */
	int64_t stop_ns, first_ns, last_ns;
	uint64_t interval_ns, interval_rest, carry;	/* between calls, for a flow with a rate */
	uint64_t sequence, calls, blocked;
	uint64_t missed, refused;	/* launch times that the error queue reports */
	uint64_t left;			/* TCP: bytes left of the message being sent */
	unsigned char *buffer;
	struct sockaddr_in from;	/* the local address in use */
	char summary[512];		/* TCP: of the whole connection */
};

static struct flow *flows;
static size_t flow_count;
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static int64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "psp-send: %s: %s\n", what, why);
	exit(1);
}

static void usage(const char *why)
{
	fprintf(stderr, "psp-send: %s\n"
		"usage: psp-send [--epoch-ns N] [--start-ns N] --stop-ns N [--sndbuf BYTES]\n"
		"                [--uid N] [--samples PREFIX] (--flow SPEC)... | --flows FILE\n"
		"SPEC: to=ADDR:PORT[,from=[ADDR]:PORT][,name=NAME][,payload=BYTES][,batch=N]\n"
		"      [,class=MAJOR:MINOR[,classes=N]][,ports=N][,sockets=N,turn=NS]\n"
		"      [,rate=BPS|max][,pacing=BPS][,start=NS][,stop=NS]\n"
		"      [,ahead=CALLS][,slack=NS]\n"
		"      [,txtime={monotonic|tai|real}[-deadline][,lead=NS][,jitter=NS]]\n"
		"  or: proto=tcp,to=ADDR:PORT[,from=[ADDR]:PORT][,name=NAME][,congestion=NAME]\n"
		"      [,window=BYTES][,pacing=BPS][,sample=NS][,message=BYTES,every=NS]\n"
		"      [,start=NS][,stop=NS]\n"
		"NS count from the epoch on CLOCK_MONOTONIC.\n", why);
	exit(2);
}

/* ---- set-up ---- */

static void add_socket(const struct flow_spec *spec, uint64_t number)
{
	flows = reallocarray(flows, flow_count + 1, sizeof(*flows));
	if (!flows)
		fail("flows", strerror(ENOMEM));
	memset(&flows[flow_count], 0, sizeof(*flows));
	flows[flow_count].spec = *spec;
	flows[flow_count].socket = number;
	flow_count++;
}

static void add_flow(char *text)
{
	struct flow_spec spec;
	char why[256];

	if (!flow_parse(&spec, flow_count, text, why, sizeof(why)))
		usage(why);
	for (uint64_t i = 0; i < spec.sockets; i++)
		add_socket(&spec, i);
}

static void read_flows(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;

	if (!file)
		fail(path, strerror(errno));
	while (getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (*line)
			add_flow(line);
	}
	if (ferror(file))
		fail(path, strerror(errno));
	free(line);
	fclose(file);
}

/*
 * Sets the send buffer. SO_SNDBUFFORCE exceeds net.core.wmem_max, if
 * privileged.
 */
static void set_buffer(const struct flow *flow, int bytes)
{
	if (setsockopt(flow->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) &&
	    setsockopt(flow->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)))
		fail(flow->spec.name, strerror(errno));
}

/*
 * Selects a class: a qdisc takes a priority with its own major number as the
 * class.
 */
static int set_class(const struct flow *flow, uint32_t class)
{
	return setsockopt(flow->fd, SOL_SOCKET, SO_PRIORITY, &class, sizeof(class));
}

/*
 * Lets sockets of one flow have the same addresses. A mark, 1 for the first
 * socket, tells them apart, so that filters can choose a queue for each.
 */
static int set_turns(const struct flow *flow)
{
	uint32_t mark = flow->socket + 1;
	int on = 1;

	return setsockopt(flow->fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) ||
	       setsockopt(flow->fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark));
}

static void open_udp(struct flow *flow, int events, int sndbuf)
{
	const struct flow_spec *spec = &flow->spec;
	struct epoll_event event = { .events = EPOLLOUT | EPOLLET, .data.ptr = flow };
	uint64_t pacing = spec->pacing_bps / 8;
	int segment = spec->payload;

	flow->buffer = calloc(spec->batch, spec->payload);
	flow->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (!flow->buffer || flow->fd < 0)
		fail(spec->name, strerror(errno));
	if (sndbuf)
		set_buffer(flow, sndbuf);
	if (pacing &&
	    setsockopt(flow->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &pacing, sizeof(pacing)))
		fail(spec->name, strerror(errno));
	if (spec->txtime && txtime_open(flow->fd, spec->clock, spec->deadline))
		fail(spec->name, strerror(errno));
	if (spec->batch > 1 &&
	    setsockopt(flow->fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)))
		fail(spec->name, strerror(errno));
	if (spec->class && set_class(flow, spec->class))
		fail(spec->name, strerror(errno));
	if (spec->turn_ns && set_turns(flow))
		fail(spec->name, strerror(errno));
	/* A flow whose port changes has no one peer to connect to. */
	if ((spec->from.sin_port &&
	     bind(flow->fd, (const struct sockaddr *)&spec->from, sizeof(spec->from))) ||
	    (spec->ports == 1 &&
	     connect(flow->fd, (const struct sockaddr *)&spec->to, sizeof(spec->to))) ||
	    (!spec->slack_ns && epoll_ctl(events, EPOLL_CTL_ADD, flow->fd, &event)))
		fail(spec->name, strerror(errno));
}

static void time_flow(struct flow *flow, int64_t epoch_ns, int64_t start_ns, int64_t stop_ns)
{
	const struct flow_spec *spec = &flow->spec;
	uint64_t bits = spec->batch * (spec->payload + FLOW_HEADERS) * 8;

	if (spec->start_ns >= 0)
		start_ns = spec->start_ns;
	if (spec->stop_ns >= 0)
		stop_ns = spec->stop_ns;
	if (stop_ns < 0)
		usage("a flow has no stop");
	flow->begin_ns = start_ns < 0 ? now_ns() : epoch_ns + start_ns;
	flow->begin_ns += flow->socket * spec->turn_ns;
	flow->next_ns = flow->begin_ns;
	flow->stop_ns = epoch_ns + stop_ns;
	if (spec->rate_bps) {
		flow->interval_ns = bits * NSEC_PER_SEC / spec->rate_bps;
		flow->interval_rest = bits * NSEC_PER_SEC % spec->rate_bps;
		flow->next_ns -= spec->ahead * flow->interval_ns;
	}
}

/* ---- sending ---- */

static void write_headers(struct flow *flow, int64_t time_ns)
{
	unsigned char *to = flow->buffer;
	uint64_t words[2];

	for (uint64_t i = 0; i < flow->spec.batch; i++, to += flow->spec.payload) {
		words[0] = htobe64(flow->sequence + i);
		words[1] = htobe64(time_ns);
		memcpy(to, words, sizeof(words));
	}
}

static void advance(struct flow *flow)
{
	if (!flow->spec.rate_bps)
		return;
	flow->next_ns += flow->interval_ns;
	flow->carry += flow->interval_rest;
	if (flow->carry >= flow->spec.rate_bps) {
		flow->carry -= flow->spec.rate_bps;
		flow->next_ns++;
	}
}

/* Moves a flow whose socket's turn is over to its next turn. */
static void await_turn(struct flow *flow, int64_t time_ns)
{
	const struct flow_spec *spec = &flow->spec;
	int64_t cycle_ns = spec->sockets * spec->turn_ns, into_ns;

	if (spec->sockets == 1)
		return;
	if (!spec->rate_bps && flow->next_ns < time_ns)
		flow->next_ns = time_ns;
	if (flow->next_ns < flow->begin_ns)
		flow->next_ns = flow->begin_ns;
	into_ns = (flow->next_ns - flow->begin_ns) % cycle_ns;
	if (into_ns >= (int64_t)spec->turn_ns)
		flow->next_ns += cycle_ns - into_ns;
}

static ssize_t send_datagrams(const struct flow *flow, size_t bytes, int64_t launch_ns)
{
	const struct flow_spec *spec = &flow->spec;
	struct sockaddr_in to = spec->to;

	if (spec->classes > 1 && set_class(flow, spec->class + flow->calls % spec->classes))
		return -1;
	if (spec->txtime)
		return txtime_send(flow->fd, flow->buffer, bytes, spec->clock, launch_ns);
	if (spec->ports == 1)
		return send(flow->fd, flow->buffer, bytes, 0);
	to.sin_port = htons(ntohs(to.sin_port) + flow->calls % spec->ports);
	return sendto(flow->fd, flow->buffer, bytes, 0, (const struct sockaddr *)&to, sizeof(to));
}

/*
 * Sends one datagram or batch, and selects the next class and port for the
 * next.
 */
static void send_udp(struct flow *flow, int64_t time_ns)
{
	size_t bytes = flow->spec.batch * flow->spec.payload;
	int64_t launch_ns = time_ns;

	if (flow->spec.txtime) {
		launch_ns = (flow->spec.rate_bps ? flow->next_ns : time_ns) +
			    flow->spec.lead_ns + flow_jitter_ns(&flow->spec, flow->sequence);
		txtime_read_reports(flow->fd, &flow->missed, &flow->refused);
	}
	write_headers(flow, launch_ns);
	if (send_datagrams(flow, bytes, launch_ns) == (ssize_t)bytes) {
		if (!flow->calls++)
			flow->first_ns = time_ns;
		flow->last_ns = time_ns;
		flow->sequence += flow->spec.batch;
		advance(flow);
	} else if (errno == EAGAIN && flow->spec.slack_ns) {
		/* Each frame that leaves would wake a flow that waits for room. */
		fail(flow->spec.name, "no room: a flow with slack needs a larger --sndbuf");
	} else if (errno == EAGAIN) {
		flow->blocked++;
		flow->waits_for_room = true;
	} else if (errno != ECONNREFUSED && errno != EINTR) {
		/*
		 * ECONNREFUSED is about an earlier datagram: no socket receives
		 * there.
		 */
		fail(flow->spec.name, strerror(errno));
	}
}

/*
 * Notes how much of a message was sent. After its last byte, sets the next
 * one's time.
 */
static void end_message(struct flow *flow, uint64_t sent)
{
	if (!flow->spec.message)
		return;
	flow->left -= sent;
	if (!flow->left)
		flow->next_ns += flow->spec.every_ns;
}

/* Sends with one system call; the first call starts the connection. */
static void send_tcp(struct flow *flow, int events, int64_t time_ns)
{
	struct epoll_event event = { .events = EPOLLOUT | EPOLLET, .data.ptr = flow };
	const struct flow_spec *spec = &flow->spec;
	ssize_t sent;

	if (!flow->first_ns) {
		flow->first_ns = time_ns;
		flow->waits_for_room = true;
		if ((connect(flow->fd, (const struct sockaddr *)&spec->to, sizeof(spec->to)) &&
		     errno != EINPROGRESS) ||
		    epoll_ctl(events, EPOLL_CTL_ADD, flow->fd, &event))
			fail(spec->name, strerror(errno));
		return;
	}
	flow->last_ns = time_ns;
	if (!flow->left)
		flow->left = spec->message;
	sent = tcp_send(flow->fd, flow->left);
	if (sent > 0) {
		flow->calls++;
		end_message(flow, sent);
	} else if (errno == EAGAIN) {
		flow->blocked++;
		flow->waits_for_room = true;
	} else if (errno != EINTR) {
		fail(spec->name, strerror(errno));
	}
}

static void end_flow(struct flow *flow, int64_t time_ns)
{
	socklen_t size = sizeof(flow->from);

	flow->ended = true;
	getsockname(flow->fd, (struct sockaddr *)&flow->from, &size);
	if (!flow->spec.tcp)
		return;
	if (flow->spec.sample_ns)
		sampler_end(flow->fd, time_ns);
	tcp_end(flow->fd, flow->summary, sizeof(flow->summary));
}

/*
 * Returns true if the flow has no more to send. TCP data may still be in
 * flight.
 */
static bool is_over(const struct flow *flow, int64_t time_ns)
{
	return time_ns >= flow->stop_ns ||
	       (!flow->spec.tcp && !flow->waits_for_room && flow->next_ns >= flow->stop_ns);
}

/* Returns when a flow may send: what it sends ahead begins no earlier than the flow. */
static int64_t due_at(const struct flow *flow)
{
	return flow->next_ns < flow->begin_ns ? flow->begin_ns : flow->next_ns;
}

/*
 * Serves every flow that may send once. Returns when the next flow may send; a
 * flow that waits for room counts with its stop time. Returns 0 for at once,
 * INT64_MAX for never.
 */
static int64_t take_turns(int events)
{
	int64_t wake_ns = INT64_MAX, time_ns = now_ns();

	for (struct flow *flow = flows; flow < flows + flow_count; flow++) {
		int64_t due_ns;

		if (flow->ended)
			continue;
		await_turn(flow, time_ns);
		if (!flow->waits_for_room && time_ns < flow->stop_ns &&
		    time_ns >= due_at(flow)) {
			if (flow->spec.tcp)
				send_tcp(flow, events, time_ns);
			else
				send_udp(flow, time_ns);
			time_ns = now_ns();
		}
		if (is_over(flow, time_ns)) {
			end_flow(flow, time_ns);
			continue;
		}
		due_ns = flow->stop_ns;
		if (!flow->waits_for_room && due_at(flow) < due_ns)
			due_ns = due_at(flow);
		if (due_ns <= time_ns)
			due_ns = 0;
		else if (due_ns + (int64_t)flow->spec.slack_ns < flow->stop_ns)
			due_ns += flow->spec.slack_ns;
		if (due_ns < wake_ns)
			wake_ns = due_ns;
	}
	return wake_ns;
}

/* Sleeps until @wake_ns or until a socket has room. */
static void look_for_room(int events, int64_t wake_ns)
{
	struct epoll_event found[EVENTS_MAX];
	struct timespec timeout = { 0, 0 };
	int64_t left_ns;
	int n;

	if (wake_ns) {
		left_ns = wake_ns - now_ns();
		if (left_ns > 0) {
			timeout.tv_sec = left_ns / NSEC_PER_SEC;
			timeout.tv_nsec = left_ns % NSEC_PER_SEC;
		}
	}
	n = epoll_pwait2(events, found, EVENTS_MAX, &timeout, NULL);
	if (n < 0 && errno != EINTR)
		fail("epoll_pwait2", strerror(errno));
	while (n-- > 0)
		((struct flow *)found[n].data.ptr)->waits_for_room = false;
}

static void send_all(int events)
{
	unsigned int turns = 0;
	int64_t wake_ns;

	while (!interrupted) {
		wake_ns = take_turns(events);
		if (wake_ns == INT64_MAX)
			return;
		if (wake_ns || ++turns == TURNS_MAX) {
			look_for_room(events, wake_ns);
			turns = 0;
		}
	}
	for (struct flow *flow = flows; flow < flows + flow_count; flow++)
		if (!flow->ended)
			end_flow(flow, now_ns());
}

static void print_address(const char *key, const struct sockaddr_in *address)
{
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
	printf("\"%s\":\"%s:%u\",", key, text, ntohs(address->sin_port));
}

/* Adds what another socket of the same flow has sent. */
static void add_counts(struct flow *flow, const struct flow *other)
{
	flow->sequence += other->sequence;
	flow->calls += other->calls;
	flow->blocked += other->blocked;
	if (other->first_ns && (!flow->first_ns || other->first_ns < flow->first_ns))
		flow->first_ns = other->first_ns;
	if (other->last_ns > flow->last_ns)
		flow->last_ns = other->last_ns;
}

static void report(const struct flow *flow)
{
	const struct flow_spec *spec = &flow->spec;

	printf("{\"name\":\"%s\",", spec->name);
	print_address("to", &spec->to);
	print_address("from", &flow->from);
	if (spec->tcp)
		printf("%s,", flow->summary);
	else
		printf("\"payload\":%" PRIu64 ",\"datagrams\":%" PRIu64 ",\"bytes\":%" PRIu64
		       ",", spec->payload, flow->sequence, flow->sequence * spec->payload);
	if (spec->txtime)
		printf("\"missed\":%" PRIu64 ",\"refused\":%" PRIu64 ",", flow->missed,
		       flow->refused);
	printf("\"calls\":%" PRIu64 ",\"blocked\":%" PRIu64
	       ",\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64 "}\n",
	       flow->calls, flow->blocked, flow->first_ns, flow->last_ns);
}

static void run(int64_t epoch_ns, int64_t start_ns, int64_t stop_ns, int sndbuf,
		const char *samples)
{
	struct sigaction action = { .sa_handler = on_signal };
	int events = epoll_create1(EPOLL_CLOEXEC);

	if (events < 0)
		fail("epoll_create1", strerror(errno));
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	prctl(PR_SET_TIMERSLACK, 1UL);
	sampler_init(samples, epoch_ns);
	for (struct flow *flow = flows; flow < flows + flow_count; flow++) {
		time_flow(flow, epoch_ns, start_ns, stop_ns);
		if (!flow->spec.tcp) {
			open_udp(flow, events, sndbuf);
			continue;
		}
		flow->fd = tcp_open(&flow->spec);
		if (flow->fd < 0 ||
		    (flow->spec.sample_ns &&
		     sampler_add(flow->spec.name, flow->fd, flow->next_ns, flow->stop_ns,
				 flow->spec.sample_ns)))
			fail(flow->spec.name, strerror(errno));
	}
	if (sampler_start())
		fail("a thread for samples", strerror(errno));
	send_all(events);
}

/* Waits until the last launch times have passed, and reads what became of them. */
static void await_reports(void)
{
	int64_t longest_ns = 0;
	struct timespec pause;

	for (struct flow *flow = flows; flow < flows + flow_count; flow++)
		if (flow->spec.txtime && flow->spec.lead_ns >= longest_ns)
			longest_ns = flow->spec.lead_ns + 2 * REPORT_NS;
	pause.tv_sec = longest_ns / NSEC_PER_SEC;
	pause.tv_nsec = longest_ns % NSEC_PER_SEC;
	if (longest_ns)
		nanosleep(&pause, NULL);
	for (struct flow *flow = flows; flow < flows + flow_count; flow++)
		if (flow->spec.txtime)
			txtime_read_reports(flow->fd, &flow->missed, &flow->refused);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "epoch-ns", required_argument, NULL, 'e' },
		{ "start-ns", required_argument, NULL, 's' },
		{ "stop-ns", required_argument, NULL, 't' },
		{ "sndbuf", required_argument, NULL, 'b' },
		{ "uid", required_argument, NULL, 'u' },
		{ "samples", required_argument, NULL, 'p' },
		{ "flow", required_argument, NULL, 'f' },
		{ "flows", required_argument, NULL, 'F' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t number[256] = { ['s'] = UINT64_MAX, ['t'] = UINT64_MAX };
	const char *samples = "";
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'f')
			add_flow(optarg);
		else if (option == 'F')
			read_flows(optarg);
		else if (option == 'p')
			samples = optarg;
		else if (option == '?' ||
			 !parse_number(optarg, 0,
				       option == 'b' || option == 'u' ? INT32_MAX :
									INT64_MAX / 4,
				       &number[option]))
			usage("wrong option");
	}
	if (optind != argc || !flow_count)
		usage(flow_count ? "too many words" : "there is no flow");
	if (number['u'] && !become_user(number['u']))
		fail("--uid", strerror(errno));

	run(number['e'], number['s'], number['t'], number['b'], samples);
	await_reports();
	for (size_t i = 0; i < flow_count; i += flows[i].spec.sockets) {
		for (size_t other = 1; other < flows[i].spec.sockets; other++)
			add_counts(&flows[i], &flows[i + other]);
		report(&flows[i]);
	}
	return 0;
}
