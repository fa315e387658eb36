/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration file: section [tokd], key = value, # comments. librte_cfgfile reads it, but
 * skips without a word what is none of these, and cuts what is too long: it only gets what
 * check_lines has looked at. Since it opens a file by its name and nothing else, what was checked
 * is handed to it as a memfd: what it reads is what was checked.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <rte_cfgfile.h>

#include "options_table.h"

#define COMMENT '#'
#define LINE_MAX_BYTES 320 /* of key, blanks and value; librte_cfgfile's buffer takes 322 */

_Static_assert(OPT_TEXT_MAX <= CFG_VALUE_LEN - 1, "librte_cfgfile would cut a value");
_Static_assert(LINE_MAX_BYTES < CFG_NAME_LEN + CFG_VALUE_LEN + 2, "or a line");

struct line {
	const char *path;
	size_t number; /* from 1 */
	const char *text;
	size_t len; /* without comment, and blanks around it */
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void
strip(const char **text, size_t *len)
{
	while (*len > 0 && is_blank((*text)[*len - 1]))
		--*len;
	for (; *len > 0 && is_blank(**text); --*len)
		++*text;
}

static int
bad_line(const struct line *l, struct tokd_options_error *e, const char *what)
{
	return tokd_opt_bad(e, "%.200s: line %zu: %s", l->path, l->number, what);
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

static int
check_section(const struct line *l, bool *in_section, struct tokd_options_error *e)
{
	static const char section[] = "[" OPT_SECTION "]";

	if (l->len != strlen(section) || memcmp(l->text, section, l->len) != 0)
		return tokd_opt_bad(e, "%.200s: line %zu: %.*s: no such section; there is only %s",
			l->path, l->number, (int)(l->len < 64 ? l->len : 64), l->text, section);
	if (*in_section)
		return bad_line(l, e, "section [" OPT_SECTION "] a second time; keep one");
	*in_section = true;
	return 0;
}

static int
check_entry(const struct line *l, bool in_section, struct tokd_options_error *e)
{
	const char *equals = memchr(l->text, '=', l->len), *key = l->text, *value;
	size_t key_len, value_len;

	if (equals == NULL)
		return bad_line(
			l, e, "neither [" OPT_SECTION "] nor key = value; begin a comment with #");
	if (!in_section)
		return bad_line(l, e, "no section yet; write [" OPT_SECTION "] above it");
	key_len = (size_t)(equals - key);
	strip(&key, &key_len);
	value = equals + 1;
	value_len = (size_t)(l->text + l->len - value);
	strip(&value, &value_len);
	if (key_len == 0)
		return bad_line(l, e, "no key before the =; write key = value");
	if (key_len > CFG_NAME_LEN - 1)
		return bad_line(l, e, "the key is longer than any there is");
	for (size_t i = 0; i + 1 < value_len; i++)
		value_len -= value[i] == '\\' && value[i + 1] == COMMENT;
	if (value_len > OPT_TEXT_MAX || l->len > LINE_MAX_BYTES)
		return tokd_opt_bad(e,
			"%.200s: line %zu: key, = and value are %zu bytes; a value can be %u, with "
			"its key and blanks %u; shorten it",
			l->path, l->number, l->len, OPT_TEXT_MAX, LINE_MAX_BYTES);
	return 0;
}

static int
check_line(const struct line *l, bool *in_section, struct tokd_options_error *e)
{
	if (l->len == 0)
		return 0;
	if (l->text[0] == '[')
		return check_section(l, in_section, e);
	return check_entry(l, *in_section, e);
}

/* A line that is not text is not one of a configuration file. */
static int
check_bytes(const struct line *l, struct tokd_options_error *e)
{
	for (size_t i = 0; i < l->len; i++) {
		const unsigned char c = (unsigned char)l->text[i];

		if (iscntrl(c) && !is_blank((char)c))
			return tokd_opt_bad(e,
				"%.200s: line %zu: byte %zu is 0x%02x: not text; give a text file",
				l->path, l->number, i + 1, c);
	}
	return 0;
}

/* Write to *to what librte_cfgfile is to see: all lines, bare of comments. */
static int
check_lines(
	const char *path, const char *text, size_t bytes, FILE *to, struct tokd_options_error *e)
{
	struct line l = {.path = path};
	bool in_section = false;

	for (const char *end = text + bytes, *next; text < end; text = next) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		next = newline != NULL ? newline + 1 : end;
		l.number++;
		l.text = text;
		l.len = (size_t)((newline != NULL ? newline : end) - text);
		if (check_bytes(&l, e) != 0)
			return -1;
		l.len = comment_from(l.text, l.len);
		strip(&l.text, &l.len);
		if (check_line(&l, &in_section, e) != 0)
			return -1;
		fwrite(l.text, 1, l.len, to);
		fputc('\n', to);
	}
	return 0;
}

struct rte_cfgfile *
tokd_opt_file_parse(const char *path, const char *text, size_t bytes, struct tokd_options_error *e)
{
	const struct rte_cfgfile_parameters parameters = {.comment_character = COMMENT};
	struct rte_cfgfile *file = NULL;
	const int fd = memfd_create("tokd-config", MFD_CLOEXEC);
	FILE *checked = fd >= 0 ? fdopen(fd, "w") : NULL;
	char name[32];

	if (checked == NULL) {
		tokd_opt_bad(e, "%.200s: no memory to check it in: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	if (check_lines(path, text, bytes, checked, e) == 0) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		if (fflush(checked) == 0)
			file = rte_cfgfile_load_with_params(
				name, CFG_FLAG_EMPTY_VALUES, &parameters);
		if (file == NULL)
			tokd_opt_bad(e, "%.200s: not read: no memory, or no /proc", path);
	}
	fclose(checked);
	return file;
}

/* All of the file that is open as fd, whose size is `bytes`; the caller frees it. */
static char *
read_all(int fd, const char *path, size_t bytes, struct tokd_options_error *e)
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
	tokd_opt_bad(e, "%.200s: not read: %s", path,
		text == NULL || got < 0 ? strerror(errno) : "it was cut while being read");
	free(text);
	return NULL;
}

struct rte_cfgfile *
tokd_opt_file_read(const char *path, struct tokd_options_error *e)
{
	/* Without waiting for the other end, should it be a pipe. */
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct rte_cfgfile *file = NULL;
	struct stat st;
	char *text = NULL;

	if (fd < 0 || fstat(fd, &st) != 0)
		tokd_opt_bad(e, "%.200s: the configuration file is not opened: %s", path,
			strerror(errno));
	else if (!S_ISREG(st.st_mode))
		tokd_opt_bad(e, "%.200s: %s, not a regular file; give a configuration file", path,
			S_ISDIR(st.st_mode) ? "a folder" : "a pipe or device");
	else if (st.st_size > OPT_FILE_MAX)
		tokd_opt_bad(e,
			"%.200s: %lld bytes, a configuration file can have %u; give another", path,
			(long long)st.st_size, OPT_FILE_MAX);
	else
		text = read_all(fd, path, (size_t)st.st_size, e);
	if (text != NULL)
		file = tokd_opt_file_parse(path, text, (size_t)st.st_size, e);
	free(text);
	if (fd >= 0)
		close(fd);
	return file;
}

static int
ask_one(const char *path, struct rte_cfgfile *file, const char *key, struct tokd_opt_asked *asked,
	struct tokd_options_error *e)
{
	const struct tokd_opt_def *d = tokd_opt_find(key, strlen(key));
	const char **text;

	if (d == NULL) {
		const char *near = tokd_opt_near(key, strlen(key));

		if (near == NULL || tokd_opt_find(near, strlen(near)) == NULL)
			return tokd_opt_bad(e,
				"%.200s: %s: no such key; the keys are the names of the options of "
				"--help",
				path, key);
		return tokd_opt_bad(e, "%.200s: %s: no such key; is %s meant?", path, key, near);
	}
	if (d->rule == RULE_NOT_IN_FILE)
		return tokd_opt_bad(e,
			"%.200s: %s: stands on the command line or in the environment only; take "
			"it out",
			path, key);
	text = &asked->text[TOKD_FROM_FILE][d - tokd_opt_defs];
	if (*text != NULL)
		return tokd_opt_bad(e, "%.200s: %s: given twice; keep one", path, key);
	*text = rte_cfgfile_get_entry(file, OPT_SECTION, key);
	return 0;
}

int
tokd_opt_file_ask(const char *path, struct rte_cfgfile *file, struct tokd_opt_asked *asked,
	struct tokd_options_error *e)
{
	const int n = rte_cfgfile_section_num_entries(file, OPT_SECTION);
	struct rte_cfgfile_entry *entries;
	int rc = 0;

	if (n <= 0)
		return 0; /* no section, or nothing in it */
	entries = calloc((size_t)n, sizeof(*entries));
	if (entries == NULL)
		return tokd_opt_bad(e, "%.200s: no memory for %d keys", path, n);
	rte_cfgfile_section_entries(file, OPT_SECTION, entries, n);
	for (int i = 0; i < n && rc == 0; i++)
		rc = ask_one(path, file, entries[i].name, asked, e);
	free(entries);
	return rc;
}
