// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "sampler.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tcp.h"

#define NSEC_PER_SEC	1000000000LL

struct sampled {
	int fd;
	int64_t next_ns, every_ns, stop_ns;
	FILE *file;		/* NULL: sampling has ended */
};

static struct sampled *all;
static size_t count;
static const char *prefix;
static int64_t epoch_ns;
/*
 * Its holder inherits the sampler thread's priority: else the sampler could
 * wait until the scheduler runs the holder.
 */
static pthread_mutex_t lock;

void sampler_init(const char *path_prefix, int64_t epoch)
{
	prefix = path_prefix;
	epoch_ns = epoch;
}

int sampler_add(const char *name, int fd, int64_t begin_ns, int64_t stop_ns, int64_t every_ns)
{
	struct sampled s = {
		.fd = fd, .next_ns = begin_ns, .stop_ns = stop_ns, .every_ns = every_ns,
	};
	struct sampled *more = realloc(all, (count + 1) * sizeof(*all));
	char path[4096];

	if (!more)
		return -1;
	all = more;
	snprintf(path, sizeof(path), "%sflow-%s.tcp", prefix, name);
	s.file = fopen(path, "we");
	if (!s.file)
		return -1;
	tcp_samples_begin(s.file);
	all[count++] = s;
	return 0;
}

static int64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

/*
 * Takes the samples that are due. Returns when the next one is; INT64_MAX:
 * never.
 */
static int64_t sample_due(void)
{
	int64_t next_ns = INT64_MAX, time_ns;

	for (struct sampled *s = all; s < all + count; s++) {
		if (!s->file || s->next_ns >= s->stop_ns)
			continue;
		time_ns = now_ns();
		if (time_ns >= s->next_ns)
			tcp_sample(s->file, s->fd, time_ns - epoch_ns);
		while (s->next_ns <= time_ns)
			s->next_ns += s->every_ns;
		if (s->next_ns < s->stop_ns && s->next_ns < next_ns)
			next_ns = s->next_ns;
	}
	return next_ns;
}

static void *sampler(void *unused)
{
	struct timespec until;
	int64_t next_ns;

	for (;;) {
		pthread_mutex_lock(&lock);
		next_ns = sample_due();
		pthread_mutex_unlock(&lock);
		if (next_ns == INT64_MAX)
			return unused;
		until.tv_sec = next_ns / NSEC_PER_SEC;
		until.tv_nsec = next_ns % NSEC_PER_SEC;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
}

int sampler_start(void)
{
	struct sched_param first = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };
	pthread_mutexattr_t inherits;
	pthread_attr_t attributes;
	pthread_t thread;
	int error;

	if (!count)
		return 0;
	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &inherits);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &first);
	error = pthread_create(&thread, &attributes, sampler, NULL);
	pthread_attr_destroy(&attributes);
	errno = error;
	return error ? -1 : 0;
}

void sampler_end(int fd, int64_t time_ns)
{
	for (struct sampled *s = all; s < all + count; s++) {
		if (s->fd != fd)
			continue;
		pthread_mutex_lock(&lock);
		tcp_sample(s->file, fd, time_ns - epoch_ns);
		fclose(s->file);
		s->file = NULL;
		pthread_mutex_unlock(&lock);
	}
}
