/* SPDX-License-Identifier: GPL-2.0-only */
/* Drops privileges for good. */
#ifndef USER_H
#define USER_H

#include <grp.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

/*
 * Becomes the user @uid and the group of the same number. Returns false if that
 * is not permitted, or if root privileges could be regained.
 */
static inline bool become_user(uint32_t uid)
{
	return !setgroups(0, NULL) && !setresgid(uid, uid, uid) &&
	       !setresuid(uid, uid, uid) && (!uid || setuid(0) != 0);
}

#endif
