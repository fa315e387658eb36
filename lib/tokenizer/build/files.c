/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "tables/kinds.h"

#define NAMES_MAX 100 /* temporary names to try */

const char *
tok_shown_path(const char *path)
{
	size_t len = strlen(path);

	return len > TOK_SHOWN_MAX ? path + len - TOK_SHOWN_MAX : path;
}

/* All `size` bytes of an open file, or NULL. */
static char *
read_whole(int fd, const char *shown, size_t size, struct tok_error *err)
{
	char *text = malloc(size + 1);
	size_t have = 0;

	if (text == NULL) {
		tok_fail(err, "%s: out of memory for %zu bytes", shown, size);
		return NULL;
	}
	while (have < size) {
		ssize_t got = read(fd, text + have, size - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			tok_fail(err, "%s: read %zu of %zu bytes: %s", shown, have, size,
				got < 0 ? strerror(errno) : "the file has become shorter");
			free(text);
			return NULL;
		}
		have += (size_t)got;
	}
	text[size] = '\0';
	return text;
}

char *
tok_read_file(const char *path, size_t *len, struct tok_error *err)
{
	const char *shown = tok_shown_path(path);
	/* Without O_NONBLOCK, opening a FIFO would wait for a writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	char *text = NULL;

	if (fd < 0 || fstat(fd, &st) != 0)
		tok_fail(err, "%s: %s", shown, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		tok_fail(err, "%s: not a regular file", shown);
	else if ((size_t)st.st_size > TOK_FILE_MAX)
		tok_fail(err, "%s: %zu bytes, the limit of a vocabulary file is %zu", shown,
			(size_t)st.st_size, TOK_FILE_MAX);
	else
		text = read_whole(fd, shown, (size_t)st.st_size, err);
	*len = text == NULL ? 0 : (size_t)st.st_size;
	if (fd >= 0)
		close(fd);
	return text;
}

bool
tok_line_next(struct tok_lines *l)
{
	char *newline;

	if (l->next == l->end)
		return false;
	l->p = l->next;
	newline = memchr(l->p, '\n', (size_t)(l->end - l->p));
	l->len = (size_t)((newline == NULL ? l->end : newline) - l->p);
	l->next = newline == NULL ? l->end : newline + 1;
	return true;
}

bool
tok_whole_file_begin(struct tok_whole_file *f, const char *out, struct tok_error *err)
{
	f->fd = -1;
	f->out = out;
	for (uint32_t i = 0; f->fd < 0 && i < NAMES_MAX; i++) {
		if (snprintf(f->temporary, sizeof(f->temporary), "%s.%ld.%u", out, (long)getpid(),
			    i) >= (int)sizeof(f->temporary))
			errno = ENAMETOOLONG;
		else
			f->fd = open(f->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
		if (f->fd < 0 && errno != EEXIST)
			break;
	}
	return f->fd >= 0 || tok_fail(err, "%s: %s", tok_shown_path(out), strerror(errno));
}

bool
tok_whole_file_put(struct tok_whole_file *f, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n > 0) {
		ssize_t done = write(f->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

/* Make the rename durable across a crash of the machine. */
static bool
sync_folder(const char *out)
{
	const char *slash = strrchr(out, '/');
	char folder[PATH_MAX];
	bool ok;
	int fd;

	snprintf(folder, sizeof(folder), "%.*s",
		slash == NULL ? 1 : (int)(slash - out) + (slash == out), slash == NULL ? "." : out);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = fsync(fd) == 0 || errno == EINVAL; /* EINVAL: this file system needs no sync */
	close(fd);
	return ok;
}

bool
tok_whole_file_end(struct tok_whole_file *f, bool ok, struct tok_error *err)
{
	int why;

	ok = ok && fsync(f->fd) == 0;
	why = errno;
	if (close(f->fd) != 0 && ok) {
		ok = false;
		why = errno;
	}
	if (ok && rename(f->temporary, f->out) != 0) {
		ok = false;
		why = errno;
	}
	if (!ok) {
		unlink(f->temporary);
		return tok_fail(err, "%s: %s", tok_shown_path(f->out), strerror(why));
	}
	return sync_folder(f->out) ||
	       tok_fail(err, "%s: its folder: %s", tok_shown_path(f->out), strerror(errno));
}

void
tok_whole_file_drop(struct tok_whole_file *f)
{
	close(f->fd);
	unlink(f->temporary);
}
