/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration file: one section, key = value, # comments. Any other line is an error. Values
 * stay in the file's buffer, NUL-terminated.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "opt_inside.h"

#define COMMENT '#'
#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* UTF-8: some editors write it */

struct line {
	const struct opt_program *program;
	const char *path;
	size_t number; /* from 1 */
	char *text;
	size_t len; /* without comment, and blanks around it */
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

bool
opt_is_quoted(const char *text, size_t len)
{
	return len >= 2 && text[0] == '"' && text[len - 1] == '"';
}

static void
strip(char **text, size_t *len)
{
	while (*len > 0 && is_blank((*text)[*len - 1]))
		--*len;
	for (; *len > 0 && is_blank(**text); --*len)
		++*text;
}

/* About a key, which is shown up to a length. */
static bool
bad_key(const struct line *l, const char *key, size_t len, const char *what, struct opt_error *e)
{
	return opt_wrong(e, "%.200s: line %zu: %.*s: %s", l->path, l->number,
		(int)(len < 64 ? len : 64), key, what);
}

/* Up to the first # that has no \ before it. */
static size_t
comment_from(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == COMMENT && (i == 0 || text[i - 1] != '\\'))
			return i;
	}
	return len;
}

static bool
take_section(const struct line *l, bool *in_section, struct opt_error *e)
{
	const char *section = l->program->file_section;
	const size_t n = strlen(section);

	if (l->len != n + 2 || memcmp(l->text + 1, section, n) != 0 || l->text[n + 1] != ']')
		return opt_wrong(e, "%.200s: line %zu: %.*s: no such section; the only one is [%s]",
			l->path, l->number, (int)(l->len < 64 ? l->len : 64), l->text, section);
	if (*in_section)
		return opt_wrong(e, "%.200s: line %zu: section [%s] is repeated; keep one", l->path,
			l->number, section);
	*in_section = true;
	return true;
}

/* The option of a key; NULL: see error. */
static const struct opt_def *
find_key(const struct line *l, const char *key, size_t len, struct opt_error *e)
{
	const struct opt_def *d = opt_find(l->program, key, len);
	const char *near = d == NULL ? opt_near(l->program, key, len) : NULL;
	char what[96];

	if (d != NULL && (d->flags & (OPT_NOT_IN_FILE | OPT_ACTION)) == 0)
		return d;
	if (d != NULL) {
		bad_key(l, key, len, "only for the command line or environment; remove it", e);
	} else if (near != NULL && opt_find(l->program, near, strlen(near)) != NULL) {
		snprintf(what, sizeof(what), "no such key; did you mean %s?", near);
		bad_key(l, key, len, what, e);
	} else {
		bad_key(l, key, len, "no such key; keys are the names of options, see --help", e);
	}
	return NULL;
}

/* Replaces \# by #. Returns the length. */
static size_t
unescape(char *value, size_t len)
{
	size_t to = 0;

	for (size_t from = 0; from < len; from++) {
		if (value[from] == '\\' && from + 1 < len && value[from + 1] == COMMENT)
			continue;
		value[to++] = value[from];
	}
	value[to] = '\0';
	return to;
}

static bool
take_entry(const struct line *l, bool in_section, struct opt_given *given, struct opt_error *e)
{
	char *equals = memchr(l->text, '=', l->len), *key = l->text, *value;
	const struct opt_def *d;
	size_t key_len, value_len;
	const char **text;

	if (equals == NULL)
		return opt_wrong(e,
			"%.200s: line %zu: neither [%s] nor key = value; begin a comment with #",
			l->path, l->number, l->program->file_section);
	if (!in_section)
		return opt_wrong(e, "%.200s: line %zu: no section; write [%s] before it", l->path,
			l->number, l->program->file_section);
	key_len = (size_t)(equals - key);
	strip(&key, &key_len);
	if (key_len == 0)
		return opt_wrong(e, "%.200s: line %zu: no key before =; write key = value", l->path,
			l->number);
	d = find_key(l, key, key_len, e);
	if (d == NULL)
		return false;
	text = &given->text[OPT_FROM_FILE][d - l->program->defs];
	if (*text != NULL)
		return bad_key(l, key, key_len, "repeated; keep one", e);
	value = equals + 1;
	value_len = (size_t)(l->text + l->len - value);
	strip(&value, &value_len);
	value_len = unescape(value, value_len);
	if (value_len > OPT_TEXT_MAX)
		return opt_wrong(e,
			"%.200s: line %zu: %s: %zu bytes; a value has at most %u; shorten it",
			l->path, l->number, d->name, value_len, OPT_TEXT_MAX);
	if (opt_is_quoted(value, value_len))
		return bad_key(l, key, key_len, "a value has no quotes; leave them out", e);
	*text = value;
	return true;
}

static bool
take_line(struct line *l, bool *in_section, struct opt_given *given, struct opt_error *e)
{
	for (size_t i = 0; i < l->len; i++) {
		const unsigned char c = (unsigned char)l->text[i];

		if (iscntrl(c) && !is_blank((char)c))
			return opt_wrong(e,
				"%.200s: line %zu: byte %zu is 0x%02x: not text; give a text file",
				l->path, l->number, i + 1, c);
	}
	l->len = comment_from(l->text, l->len);
	strip(&l->text, &l->len);
	if (l->len == 0)
		return true;
	if (l->text[0] == '[')
		return take_section(l, in_section, e);
	return take_entry(l, *in_section, given, e);
}

bool
opt_file_parse(const struct opt_program *p, const char *path, char *text, size_t bytes,
	struct opt_given *given, struct opt_error *e)
{
	const size_t mark = strlen(BYTE_ORDER_MARK);
	struct line l = {.program = p, .path = path};
	bool in_section = false;

	if (bytes >= mark && memcmp(text, BYTE_ORDER_MARK, mark) == 0) {
		text += mark;
		bytes -= mark;
	}
	for (char *end = text + bytes, *next; text < end; text = next) {
		char *newline = memchr(text, '\n', (size_t)(end - text));

		next = newline != NULL ? newline + 1 : end;
		l.number++;
		l.text = text;
		l.len = (size_t)((newline != NULL ? newline : end) - text);
		if (!take_line(&l, &in_section, given, e))
			return false;
	}
	return true;
}

/* The content of fd, whose size is `bytes`, with space for a NUL; free() it. */
static char *
read_all(int fd, const char *path, size_t bytes, struct opt_error *e)
{
	char *text = malloc(bytes + 1);
	size_t have = 0;
	ssize_t got = 1;

	while (text != NULL && have < bytes && got > 0) {
		got = read(fd, text + have, bytes - have);
		have += got > 0 ? (size_t)got : 0;
	}
	if (text != NULL && have == bytes)
		return text;
	opt_wrong(e, "%.200s: cannot read it: %s", path,
		text == NULL || got < 0 ? strerror(errno) : "it was truncated meanwhile");
	free(text);
	return NULL;
}

char *
opt_file_read(const char *path, size_t *bytes, struct opt_error *e)
{
	/* O_NONBLOCK: a pipe would wait for its writer. */
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	char *text = NULL;

	if (fd < 0 || fstat(fd, &st) != 0) {
		opt_wrong(e, "%.200s: cannot open the configuration file: %s; give a readable file",
			path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		opt_wrong(e, "%.200s: %s, not a regular file; give a configuration file", path,
			S_ISDIR(st.st_mode) ? "a folder" : "a pipe or device");
	} else if (st.st_size > OPT_FILE_MAX) {
		opt_wrong(e, "%.200s: %lld bytes, a configuration file can have %u; give another",
			path, (long long)st.st_size, OPT_FILE_MAX);
	} else {
		*bytes = (size_t)st.st_size;
		text = read_all(fd, path, *bytes, e);
	}
	if (fd >= 0)
		close(fd);
	return text;
}
