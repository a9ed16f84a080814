// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * offload DEV 0|1: does what `ethtool -K DEV tso off gso off` or on does, and checks it.
 */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int call(int fd, const char *device, __u32 command, __u32 *value)
{
	struct ethtool_value data = { .cmd = command, .data = *value };
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	request.ifr_data = (char *)&data;
	if (ioctl(fd, SIOCETHTOOL, &request)) {
		perror(device);
		return 1;
	}
	*value = data.data;
	return 0;
}

int main(int argc, char **argv)
{
	static const __u32 commands[][2] = {
		{ ETHTOOL_STSO, ETHTOOL_GTSO }, { ETHTOOL_SGSO, ETHTOOL_GGSO },
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (argc != 3 || fd < 0)
		return 2;
	for (unsigned i = 0; i < 2; i++) {
		__u32 wanted = !!atoi(argv[2]), is = wanted;

		/* A device without TSO has none to turn on or off. */
		call(fd, argv[1], commands[i][0], &is);
		if (call(fd, argv[1], commands[i][1], &is))
			return 1;
		printf("%s %u\n", i ? "gso" : "tso", is);
		if (!wanted && is)
			return 1;
	}
	return 0;
}
