// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exports the results as a ustar archive, written directly to the shared memory
 * of an ivshmem-plain device. The archive's length is written last, so an
 * unfinished run leaves no archive. Files are read to their end because debugfs
 * reports 0 as every size; so a member's header is filled in after its data.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"

#define BLOCK		512
#define ARCHIVE_AT	4096
#define STATUS_RESERVE	(8 * BLOCK)		/* bytes that keep leaves for the status */
#define PIECE		(1 << 20)
#define IVSHMEM_VENDOR	"0x1af4"
#define IVSHMEM_DEVICE	"0x1110"
#define USTAR_SIZE_MAX	077777777777LL

struct ustar {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char linkname[100], magic[6], version[2], uname[32], gname[32];
	char devmajor[8], devminor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct ustar) == BLOCK, "ustar header");

static unsigned char *memory;
static size_t memory_bytes, at;
static uint64_t memory_physical;

static bool sysfs_is(const char *folder, const char *file, const char *value)
{
	char path[PATH_MAX], text[32] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && !strncmp(text, value, strlen(value));
}

static bool map_device(const char *folder, struct reason *why)
{
	char path[PATH_MAX];
	struct stat stat;
	FILE *ranges;
	int fd, found;

	snprintf(path, sizeof(path), "%s/resource", folder);
	ranges = fopen(path, "re");
	if (!ranges)
		return because(why, "%s: %s", path, strerror(errno));
	found = fscanf(ranges, "%*s%*s%*s%*s%*s%*s%" SCNx64, &memory_physical);
	fclose(ranges);
	if (found != 1)
		return because(why, "%s: it has no third line", path);
	snprintf(path, sizeof(path), "%s/resource2", folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat) < 0)
		return because(why, "%s: %s", path, strerror(errno));
	memory_bytes = stat.st_size;
	memory = mmap(NULL, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED) {
		memory = NULL;
		return because(why, "%s: %s", path, strerror(errno));
	}
	if (memory_bytes < ARCHIVE_AT + STATUS_RESERVE)
		return because(why, "%s: %zu bytes are too few", path, memory_bytes);
	return true;
}

bool archive_open(struct reason *why)
{
	bool found = false, ok = false;
	glob_t devices;
	size_t i;

	if (glob("/sys/bus/pci/devices/*", 0, NULL, &devices))
		return because(why, "there is no PCI device");
	for (i = 0; i < devices.gl_pathc && !found; i++) {
		const char *folder = devices.gl_pathv[i];

		if (!sysfs_is(folder, "vendor", IVSHMEM_VENDOR) ||
		    !sysfs_is(folder, "device", IVSHMEM_DEVICE))
			continue;
		found = true;
		ok = map_device(folder, why);
	}
	globfree(&devices);
	if (!found)
		return because(why, "there is no ivshmem device");
	if (!ok)
		return false;
	memset(memory, 0, ARCHIVE_AT);
	memcpy(memory, "PSPLAB01", 8);
	at = ARCHIVE_AT;
	return true;
}

bool archive_input(struct reason *why)
{
	return input_receive(memory + ARCHIVE_AT, memory_bytes - ARCHIVE_AT,
			     memory_physical + ARCHIVE_AT, why);
}

static void write_octal(char *to, size_t digits, unsigned long long value)
{
	to[digits] = '\0';
	while (digits--) {
		to[digits] = '0' + (value & 7);
		value >>= 3;
	}
}

static void write_header(unsigned char *to, const char *name, size_t size)
{
	struct ustar *h = (struct ustar *)to;
	unsigned int sum = 0;

	memset(h, 0, sizeof(*h));
	memcpy(h->name, name, strlen(name));
	write_octal(h->mode, 7, 0644);
	write_octal(h->uid, 7, 0);
	write_octal(h->gid, 7, 0);
	write_octal(h->size, 11, size);
	write_octal(h->mtime, 11, 0);
	h->type = '0';
	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < BLOCK; i++)
		sum += to[i];
	write_octal(h->checksum, 6, sum);
}

/* Writes the header of a member whose data is in place behind it already. */
static void add_member(const char *name, size_t size)
{
	size_t padded = (size + BLOCK - 1) / BLOCK * BLOCK;

	write_header(memory + at, name, size);
	memset(memory + at + BLOCK + size, 0, padded - size);
	at += BLOCK + padded;
}

/* Returns the bytes that a member may have. Two zero blocks end the archive. */
static size_t room(size_t reserve)
{
	size_t needed = 3 * BLOCK + (BLOCK - 1) + reserve;

	return memory_bytes - at > needed ? memory_bytes - at - needed : 0;
}

bool archive_file(const char *path, const char *name, struct reason *why)
{
	size_t size = 0, space = room(STATUS_RESERVE);
	ssize_t n;
	int fd;

	if (!*name || strlen(name) >= sizeof(((struct ustar *)0)->name))
		return because(why, "'%s' is too long for the archive", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return because(why, "%s: %s", path, strerror(errno));
	for (;;) {
		size_t piece = space - size < PIECE ? space - size : PIECE;
		char over;

		n = piece ? read(fd, memory + at + BLOCK + size, piece) : read(fd, &over, 1);
		if (n <= 0)
			break;
		if (!piece || size + n > USTAR_SIZE_MAX) {
			close(fd);
			return because(why, "%s: the results do not fit into %zu bytes",
				       path, memory_bytes);
		}
		size += n;
	}
	if (n < 0)
		because(why, "%s: %s", path, strerror(errno));
	close(fd);
	if (n < 0)
		return false;
	add_member(name, size);
	return true;
}

bool archive_text(const char *name, const char *text, struct reason *why)
{
	size_t size = strlen(text);

	if (size > room(0))
		return because(why, "%s: the results are full", name);
	memcpy(memory + at + BLOCK, text, size);
	add_member(name, size);
	return true;
}

/*
 * Adds every file in @path, in order of name. A file that fails does not stop
 * the rest.
 */
bool archive_folder(const char *path, const char *prefix, struct reason *why)
{
	char from[PATH_MAX], name[PATH_MAX];
	struct dirent **entries;
	bool ok = true;
	int i, n;

	n = scandir(path, &entries, NULL, alphasort);
	if (n < 0)
		return because(why, "%s: %s", path, strerror(errno));
	for (i = 0; i < n; i++) {
		snprintf(from, sizeof(from), "%s/%s", path, entries[i]->d_name);
		snprintf(name, sizeof(name), "%s%s", prefix, entries[i]->d_name);
		if (entries[i]->d_type == DT_REG && !archive_file(from, name, why))
			ok = false;
		free(entries[i]);
	}
	free(entries);
	return ok;
}

void archive_close(void)
{
	uint64_t length;

	memset(memory + at, 0, 2 * BLOCK);
	length = at + 2 * BLOCK - ARCHIVE_AT;
	__sync_synchronize();
	memcpy(memory + 8, &length, sizeof(length));
	__sync_synchronize();
	munmap(memory, memory_bytes);
	memory = NULL;
}
