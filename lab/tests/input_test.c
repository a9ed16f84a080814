// SPDX-License-Identifier: GPL-2.0-only
/* The archive of a run's files: what is unpacked, and what damage is refused in which words. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../agent/agent.h"
#include "check.h"

static size_t add(unsigned char *to, size_t at, const char *name, unsigned int mode,
		  const char *data)
{
	size_t size = strlen(data), length = strlen(name) + 1;

	at += sprintf((char *)to + at, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08zX%08X",
		      1, mode, 0, 0, 1, 0, (unsigned int)size, 0, 0, 0, 0, length, 0);
	memcpy(to + at, name, length);
	at = (at + length + 3) & ~(size_t)3;
	memcpy(to + at, data, size);
	return (at + size + 3) & ~(size_t)3;
}

/* Returns the length of an archive with a folder, a file and a link. */
static size_t sample(unsigned char *to)
{
	size_t at = add(to, 0, "a", S_IFDIR | 0755, "");

	at = add(to, at, "a/file", S_IFREG | 0755, "twelve bytes");
	at = add(to, at, "a/link", S_IFLNK | 0777, "file");
	return add(to, at, "TRAILER!!!", 0, "");
}

static void refused(const char *root, unsigned char *archive, size_t bytes, const char *reason)
{
	struct reason why = { "" };
	unsigned char *exact = malloc(bytes + !bytes);

	memcpy(exact, archive, bytes);	/* so that the checker sees a read behind the end */
	CHECK(!input_unpack(root, exact, bytes, &why), "%zu bytes were taken", bytes);
	CHECK(!reason || !strcmp(why.text, reason), "says: %s", why.text);
	free(exact);
}

int main(void)
{
	char root[] = "/tmp/input_testXXXXXX/", path[64], text[32] = "";
	unsigned char archive[1024] = { 0 };
	size_t bytes = sample(archive);
	struct reason why = { "" };
	struct stat stat;
	FILE *file;

	root[strlen(root) - 1] = '\0';
	CHECK(mkdtemp(root), "no temporary folder");
	root[strlen(root)] = '/';
	CHECK(input_unpack(root, archive, bytes, &why), "%s", why.text);
	snprintf(path, sizeof(path), "%sa/link", root);
	file = fopen(path, "r");
	CHECK(file && fgets(text, sizeof(text), file), "the link leads nowhere");
	CHECK(!strcmp(text, "twelve bytes"), "read: %s", text);
	if (file)
		fclose(file);
	CHECK(!lstat(path, &stat) && S_ISLNK(stat.st_mode), "no link");

	for (size_t cut = 0; cut < bytes; cut++)
		refused(root, archive, cut, NULL);
	refused(root, archive, 0, "the files: they have no end");
	refused(root, archive, 111, "the files: they end within an entry at 0");
	archive[112 + 3] = 'x';
	refused(root, archive, bytes, "the files: no cpio header at 112");

	unlink(path);
	snprintf(path, sizeof(path), "%sa/file", root);
	unlink(path);
	snprintf(path, sizeof(path), "%sa", root);
	rmdir(path);
	CHECK(!rmdir(root), "%s is not empty", root);
	return check_result("input_test");
}
