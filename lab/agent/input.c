// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stops the machine for a snapshot, and reads the files of a run after the
 * machine went on. QEMU offers the file of its option -initrd to the guest for
 * as long as it runs (fw_cfg). A resumed guest so reads the -initrd of the
 * QEMU that resumed it.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

#define WATCHDOG_PORT	0x443			/* ib700: a number is a time from a table */
#define WATCHDOG_2S	14
#define REST_NS		2100000000ll
#define FW_CFG_DMA_PORT	0x514			/* two 32-bit ports, high half first */
#define FW_CFG_DMA_PORTS 8
#define DMA_ERROR	1u
#define DMA_READ	2u
#define DMA_SELECT	8u
#define INITRD_SIZE	0x0bu			/* keys of fw_cfg */
#define INITRD_DATA	0x12u
#define DATA_AT		512			/* of the data, behind the request */

#define CPIO_HEADER	110
#define CPIO_FIELDS	13
#define CPIO_END	"TRAILER!!!"

struct dma_request {
	uint32_t control, length;
	uint64_t address;			/* all of it big-endian */
};

/*
 * QEMU stops the machine when the watchdog's time is over. The processor is at rest
 * then, so it does not matter when QEMU's thread of the processor hears of it: had it
 * been at work, the clock could have skipped to the next timer before it stopped.
 */
bool input_stop(struct reason *why)
{
	int64_t end_ns;
	struct timespec end;
	int error;

	if (ioperm(WATCHDOG_PORT, 1, 1) < 0)
		return because(why, "ioperm: %s", strerror(errno));
	end_ns = now_ns() + REST_NS;
	end = (struct timespec){ end_ns / 1000000000, end_ns % 1000000000 };
	outb(WATCHDOG_2S, WATCHDOG_PORT);
	do {
		error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
	} while (error == EINTR);
	if (error)
		return because(why, "clock_nanosleep: %s", strerror(error));
	return true;
}

/* QEMU answers RDRAND from its seed, and the resumed one may have another. */
bool input_reseed(struct reason *why)
{
	int fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return because(why, "/dev/urandom: %s", strerror(errno));
	ok = ioctl(fd, RNDRESEEDCRNG) == 0;
	if (!ok)
		because(why, "new random numbers: %s", strerror(errno));
	close(fd);
	return ok;
}

static bool fw_cfg_read(unsigned char *memory, uint64_t physical, uint32_t key, uint32_t length,
			struct reason *why)
{
	volatile struct dma_request *request = (volatile struct dma_request *)memory;

	request->control = htobe32(key << 16 | DMA_SELECT | DMA_READ);
	request->length = htobe32(length);
	request->address = htobe64(physical + DATA_AT);
	__sync_synchronize();
	outl(htobe32(physical >> 32), FW_CFG_DMA_PORT);
	outl(htobe32((uint32_t)physical), FW_CFG_DMA_PORT + 4);
	__sync_synchronize();
	if (request->control)
		return because(why, "fw_cfg: item %#x: control is %#x", key,
			       be32toh(request->control));
	return true;
}

bool input_receive(unsigned char *memory, size_t bytes, uint64_t physical, struct reason *why)
{
	uint32_t length;
	bool ok;

	if (ioperm(FW_CFG_DMA_PORT, FW_CFG_DMA_PORTS, 1) < 0)
		return because(why, "ioperm: %s", strerror(errno));
	if (bytes < DATA_AT + sizeof(length) ||
	    !fw_cfg_read(memory, physical, INITRD_SIZE, sizeof(length), why))
		return false;
	memcpy(&length, memory + DATA_AT, sizeof(length));
	length = le32toh(length);
	if (length > bytes - DATA_AT)
		return because(why, "%u bytes of files are too many for %zu", length, bytes);
	ok = fw_cfg_read(memory, physical, INITRD_DATA, length, why) &&
	     input_unpack("/", memory + DATA_AT, length, why);
	memset(memory, 0, DATA_AT + (size_t)length);
	return ok;
}

/* ---- newc cpio ---- */

static bool parse_fields(const unsigned char *header, uint32_t fields[CPIO_FIELDS])
{
	char digits[9] = "", *end;

	if (memcmp(header, "070701", 6))
		return false;
	for (int i = 0; i < CPIO_FIELDS; i++) {
		memcpy(digits, header + 6 + 8 * i, 8);
		fields[i] = strtoul(digits, &end, 16);
		if (*end)
			return false;
	}
	return true;
}

static bool write_file(const char *path, mode_t mode, const unsigned char *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode & 07777);
	bool ok = fd >= 0;

	while (ok && size) {
		ssize_t n = write(fd, data, size);

		ok = n > 0;
		data += n;
		size -= n;
	}
	return fd >= 0 && !close(fd) && ok;
}

static bool make_entry(const char *path, mode_t mode, const unsigned char *data, size_t size)
{
	char target[PATH_MAX];

	switch (mode & S_IFMT) {
	case S_IFDIR:
		return !mkdir(path, mode & 07777) || errno == EEXIST;
	case S_IFREG:
		return write_file(path, mode, data, size);
	case S_IFLNK:
		snprintf(target, sizeof(target), "%.*s", (int)size, (const char *)data);
		return !symlink(target, path) || errno == EEXIST;
	}
	errno = EINVAL;
	return false;
}

bool input_unpack(const char *root, const unsigned char *archive, size_t bytes, struct reason *why)
{
	size_t at = 0;

	while (bytes - at >= CPIO_HEADER) {
		uint32_t fields[CPIO_FIELDS];
		size_t data, size, name_size;
		const char *name = (const char *)archive + at + CPIO_HEADER;
		char path[PATH_MAX];

		if (!parse_fields(archive + at, fields))
			return because(why, "the files: no cpio header at %zu", at);
		size = fields[6];
		name_size = fields[11];
		data = (at + CPIO_HEADER + name_size + 3) & ~(size_t)3;
		if (!name_size || data > bytes || size > bytes - data || name[name_size - 1])
			return because(why, "the files: they end within an entry at %zu", at);
		if (!strcmp(name, CPIO_END))
			return true;
		if (snprintf(path, sizeof(path), "%s%s", root, name) >= (int)sizeof(path))
			return because(why, "the files: a path is too long");
		if (!make_entry(path, fields[1], archive + data, size))
			return because(why, "%s: %s", path, strerror(errno));
		at = (data + size + 3) & ~(size_t)3;
		if (at > bytes)
			break;
	}
	return because(why, "the files: they have no end");
}
