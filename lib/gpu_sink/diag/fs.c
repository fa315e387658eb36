/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* False: longer than a path can be. */
static bool __attribute__((format(printf, 3, 0)))
full_path(const struct fs *fs, char out[PATH_MAX], const char *path, va_list ap)
{
	const size_t root = strlen(fs->root);
	const int n = vsnprintf(out + root, PATH_MAX - root, path, ap);

	memcpy(out, fs->root, root);
	return n > 0 && (size_t)n < PATH_MAX - root;
}

bool
fs_open(struct fs *fs, const char *root)
{
	struct stat st;

	memset(fs, 0, sizeof(*fs));
	if (realpath(root, fs->root) == NULL || stat(fs->root, &st) != 0)
		return false;
	if (!S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return false;
	}
	if (strcmp(fs->root, "/") == 0) {
		fs->root[0] = '\0';
		fs->live = true;
	}
	return true;
}

bool
fs_exists(const struct fs *fs, const char *path, ...)
{
	char full[PATH_MAX];
	va_list ap;
	bool fits;

	va_start(ap, path);
	fits = full_path(fs, full, path, ap);
	va_end(ap);
	return fits && access(full, F_OK) == 0;
}

static long __attribute__((format(printf, 4, 0)))
read_whole(const struct fs *fs, char *buf, size_t room, const char *path, va_list ap)
{
	char full[PATH_MAX];
	size_t got = 0;
	ssize_t n = 1;
	int fd;

	buf[0] = '\0';
	if (!full_path(fs, full, path, ap))
		return -1;
	/* Neither a pipe nor a terminal may hold us. */
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	while (got < room && n > 0) {
		n = read(fd, buf + got, room - got);
		got += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	buf[got] = '\0';
	return n < 0 && got == 0 ? -1 : (long)got;
}

long
fs_bytes(const struct fs *fs, void *buf, size_t room, const char *path, ...)
{
	va_list ap;
	long n;

	va_start(ap, path);
	n = read_whole(fs, buf, room, path, ap);
	va_end(ap);
	return n;
}

void
fs_clean(char *text)
{
	for (char *c = text; *c != '\0'; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

/* In place: the first line, without blanks around it, of what can be printed. */
static void
first_line(char *text)
{
	const char *from = text + strspn(text, " \t");
	size_t n = strcspn(from, "\n");

	while (n > 0 && strchr(" \t\r", from[n - 1]) != NULL)
		n--;
	memmove(text, from, n);
	text[n] = '\0';
	fs_clean(text);
}

bool
fs_line(const struct fs *fs, char *out, size_t room, const char *path, ...)
{
	va_list ap;
	long n;

	va_start(ap, path);
	n = read_whole(fs, out, room - 1, path, ap);
	va_end(ap);
	if (n > 0)
		first_line(out);
	return out[0] != '\0';
}

bool
fs_u64(const struct fs *fs, uint64_t *v, const char *path, ...)
{
	char text[64], *end;
	va_list ap;
	long n;

	*v = 0;
	va_start(ap, path);
	n = read_whole(fs, text, sizeof(text) - 1, path, ap);
	va_end(ap);
	if (n <= 0)
		return false;
	first_line(text);
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*v = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	return errno == 0 && end != text;
}

/* What the report can show as it stands. */
static bool
is_printable(const char *text)
{
	while (*text > ' ' && *text <= '~')
		text++;
	return *text == '\0';
}

bool
fs_is_name(const char *text)
{
	return text[0] != '\0' && text[0] != '.' && strchr(text, '/') == NULL && is_printable(text);
}

static int
by_number(const void *a, const void *b)
{
	return strverscmp(a, b);
}

struct fs_names
fs_list(const struct fs *fs, const char *path, ...)
{
	struct fs_names names = {0};
	char full[PATH_MAX];
	struct dirent *e;
	va_list ap;
	bool fits;
	DIR *dir;

	va_start(ap, path);
	fits = full_path(fs, full, path, ap);
	va_end(ap);
	dir = fits ? opendir(full) : NULL;
	if (dir == NULL)
		return names;
	names.name = calloc(FS_NAMES_MAX, sizeof(names.name[0]));
	while (names.name != NULL && (e = readdir(dir)) != NULL) {
		if (!fs_is_name(e->d_name) || strlen(e->d_name) >= sizeof(names.name[0]))
			continue;
		if (names.n == FS_NAMES_MAX) {
			names.cut = true;
			break;
		}
		strcpy(names.name[names.n++], e->d_name);
	}
	closedir(dir);
	if (names.n > 0)
		qsort(names.name, (size_t)names.n, sizeof(names.name[0]), by_number);
	return names;
}

void
fs_names_free(struct fs_names *names)
{
	free(names->name);
	*names = (struct fs_names){0};
}

bool
fs_real(const struct fs *fs, char out[PATH_MAX], const char *path, ...)
{
	const size_t root = strlen(fs->root);
	char full[PATH_MAX];
	va_list ap;
	bool found;

	va_start(ap, path);
	found = full_path(fs, full, path, ap) && realpath(full, out) != NULL;
	va_end(ap);
	if (!found || strncmp(out, fs->root, root) != 0 || out[root] != '/' ||
		!is_printable(out + root)) {
		out[0] = '\0';
		return false;
	}
	memmove(out, out + root, strlen(out + root) + 1);
	return true;
}
