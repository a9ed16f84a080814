// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parses control lines of `key=value` words; checks all words before one is
 * used.
 */
#define pr_fmt(fmt) "wire: " fmt

#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "wire.h"

static struct wire_key *find_key(const char *name, struct wire_key *keys, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static int parse_value(struct wire_key *key, const char *value)
{
	u64 number;

	if (key->text) {
		if (!*value || strlen(value) >= key->max) {
			pr_err("%s=%s: a word of 1 to %llu characters is expected\n",
			       key->name, value, key->max - 1);
			return -EINVAL;
		}
		strscpy(key->text, value, key->max);
		return 0;
	}
	if (!isdigit(*value) || kstrtou64(value, 10, &number) ||
	    number < key->min || number > key->max) {
		pr_err("%s=%s: a number of %llu to %llu is expected\n",
		       key->name, value, key->min, key->max);
		return -EINVAL;
	}
	*key->value = number;
	return 0;
}

/*
 * Sets the values of the keys in @line; the others keep theirs. Modifies @line.
 */
int wire_parse(char *line, struct wire_key *keys, int n)
{
	char *word, *value;
	struct wire_key *key;
	int i;

	while ((word = strsep(&line, " \t\n"))) {
		if (!*word)
			continue;
		value = strchr(word, '=');
		if (!value) {
			pr_err("%s: key=value is expected\n", word);
			return -EINVAL;
		}
		*value++ = '\0';
		key = find_key(word, keys, n);
		if (!key || key->seen) {
			pr_err("%s: %s\n", word, key ? "given twice" : "unknown key");
			return -EINVAL;
		}
		if (parse_value(key, value))
			return -EINVAL;
		key->seen = true;
	}
	for (i = 0; i < n; i++) {
		if (keys[i].required && !keys[i].seen) {
			pr_err("%s= is missing\n", keys[i].name);
			return -EINVAL;
		}
	}
	return 0;
}
