// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * listener PORT OPENED ACCEPTED: listens in the cgroup OPENED, goes to ACCEPTED, answers one connection with
 * 20 times 1000 bytes there, each in a packet of its own.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int go_to(const char *cgroup)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	file = fopen(path, "w");
	if (!file || fprintf(file, "%d\n", getpid()) < 0 || fclose(file)) {
		perror(path);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	char bytes[1000] = { 0 };
	int listening, accepted, one = 1;

	if (argc != 4 || go_to(argv[2]))
		return 2;
	at.sin_port = htons(atoi(argv[1]));
	listening = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listening, (struct sockaddr *)&at, sizeof(at)) || listen(listening, 5)) {
		perror("listen");
		return 1;
	}
	if (go_to(argv[3]))
		return 2;
	accepted = accept(listening, NULL, NULL);
	if (accepted < 0 || setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one))) {
		perror("accept");
		return 1;
	}
	for (int i = 0; i < 20; i++) {
		if (write(accepted, bytes, sizeof(bytes)) != sizeof(bytes))
			return 1;
		usleep(10000);
	}
	return 0;
}
