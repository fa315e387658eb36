/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs and proc, below a root: this machine's, or one that a test has prepared. What stands there
 * is not trusted: a file that is missing, too long, not text or no file at all is "not known".
 */
#ifndef TOKD_DIAG_FS_H
#define TOKD_DIAG_FS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FS_NAMES_MAX 1024

struct fs {
	char root[PATH_MAX]; /* resolved; "" is this machine */
	bool live;	     /* this machine: devices may be opened, libraries asked */
};

/* Names in a folder, in the order of their numbers. */
struct fs_names {
	char (*name)[64];
	int n;
	bool cut; /* there were more than FS_NAMES_MAX */
};

#define FS_PATH(at) __attribute__((format(printf, at, (at) + 1)))

/* False: no such folder. */
bool fs_open(struct fs *fs, const char *root);
bool fs_exists(const struct fs *fs, const char *path, ...) FS_PATH(2);
/* First line without blanks around it, control characters as '?'. False and "" where there is none.
 */
bool fs_line(const struct fs *fs, char *out, size_t room, const char *path, ...) FS_PATH(4);
/* Decimal or 0x... at the beginning of the first line. */
bool fs_u64(const struct fs *fs, uint64_t *v, const char *path, ...) FS_PATH(3);
/* Up to `room` bytes; a NUL follows (buf has room + 1). Bytes read, below 0 where there are none.
 */
long fs_bytes(const struct fs *fs, void *buf, size_t room, const char *path, ...) FS_PATH(4);
/* Without those that begin with a dot or do not fit. n is 0 where there is no folder. Free it. */
struct fs_names fs_list(const struct fs *fs, const char *path, ...) FS_PATH(2);
void fs_names_free(struct fs_names *names);
/* Where a link leads, below the root. False and "": nowhere, out of the root, or not printable. */
bool fs_real(const struct fs *fs, char out[PATH_MAX], const char *path, ...) FS_PATH(3);
/* What cannot be printed becomes '?'. */
void fs_clean(char *text);
/* Can it be part of a path, and be printed? */
bool fs_is_name(const char *text);

#endif
