/* SPDX-License-Identifier: BSD-3-Clause */
/* Split files into lines. As in the reference, a line with its end is a separate text. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "corpus.h"
#include "build/model_make.h"
#include "unicode/utf8.h"

#define READ_BYTES ((size_t)1 << 20)
/* A normalizer may make several bytes of one: this keeps words below 4 GiB. */
#define LINE_MAX_BYTES ((size_t)256 << 20)

struct reading {
	struct train_splitter split;
	bool bert;
	const struct tok_train_progress *progress;
	uint64_t done, total; /* bytes of all files */
	/* of this file */
	const char *file; /* as errors call it */
	int fd;
	uint8_t *text;
	size_t room, have;
	uint64_t at; /* bytes of the file before text[0] */
};

static bool
split_lines(struct reading *r, size_t n, struct tok_error *err)
{
	const struct tok_utf8_span span = tok_utf8_scan(r->text, n);
	const uint8_t *p = r->text, *end = p + n;

	if (span.end != TOK_UTF8_WHOLE)
		return tok_fail(err,
			"%s: not UTF-8 at byte %llu: the reference refuses such a file; convert it, "
			"or leave out what is broken (iconv -c -f UTF-8 -t UTF-8)",
			r->file, (unsigned long long)(r->at + span.valid));
	while (p < end) {
		const uint8_t *newline = memchr(p, '\n', (size_t)(end - p));
		const size_t line = newline == NULL ? (size_t)(end - p) : (size_t)(newline + 1 - p);

		if (!(r->bert ? train_split_bert : train_split_bytes)(&r->split, p, line, err))
			return false;
		p += line;
	}
	return true;
}

/* Room for more of a line that fills it. */
static bool
make_room(struct reading *r, struct tok_error *err)
{
	uint8_t *text;

	if (r->have < r->room)
		return true;
	if (r->room >= LINE_MAX_BYTES)
		return tok_fail(err, "%s: the line at byte %llu has more than %zu bytes: cut it",
			r->file, (unsigned long long)r->at, LINE_MAX_BYTES);
	text = realloc(r->text, 2 * r->room);
	if (text == NULL)
		return tok_fail(err, "%s: out of memory for a line of more than %zu bytes", r->file,
			r->room);
	r->text = text;
	r->room *= 2;
	return true;
}

static bool
read_file(struct reading *r, struct tok_error *err)
{
	const uint8_t *newline;
	size_t whole;
	ssize_t got;

	r->have = 0;
	r->at = 0;
	for (;;) {
		if (!make_room(r, err))
			return false;
		got = read(r->fd, r->text + r->have, r->room - r->have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return tok_fail(err, "%s: %s", r->file, strerror(errno));
		if (got == 0)
			return split_lines(r, r->have, err);
		newline = memrchr(r->text + r->have, '\n', (size_t)got);
		r->have += (size_t)got;
		r->done += (uint64_t)got;
		if (newline == NULL)
			continue;
		whole = (size_t)(newline + 1 - r->text);
		if (!split_lines(r, whole, err))
			return false;
		memmove(r->text, r->text + whole, r->have - whole);
		r->have -= whole;
		r->at += whole;
		if (r->progress->show != NULL)
			r->progress->show(r->progress->ctx, TOK_TRAIN_COUNTS, r->done, r->total);
	}
}

static bool
open_file(struct reading *r, const char *path, struct tok_error *err)
{
	struct stat st;

	if (strcmp(path, "-") == 0) {
		r->file = "standard input";
		r->fd = STDIN_FILENO;
		return true;
	}
	r->file = tok_shown_path(path);
	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0)
		return tok_fail(err, "%s: %s", r->file, strerror(errno));
	if (fstat(r->fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(r->fd);
		return tok_fail(err, "%s: is a folder: name the files in it", r->file);
	}
	posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return true;
}

/* Bytes of all files; 0: some are no ordinary files. A missing one is found before hours of work.
 */
static bool
measure(const char *const *files, uint32_t n, uint64_t *total, struct tok_error *err)
{
	bool known = true;

	*total = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct stat st;

		if (strcmp(files[i], "-") == 0) {
			known = false;
			continue;
		}
		if (stat(files[i], &st) != 0)
			return tok_fail(err, "%s: %s", tok_shown_path(files[i]), strerror(errno));
		known = known && S_ISREG(st.st_mode);
		*total += (uint64_t)st.st_size;
	}
	*total = known ? *total : 0;
	return true;
}

bool
train_count(const struct tok_train_options *o, const char *const *files, uint32_t n_files,
	struct train_words *words, struct tok_error *err)
{
	struct reading r = {
		.split.words = words,
		.bert = o->kind == TOK_KIND_WORDPIECE,
		.progress = &o->progress,
		.room = READ_BYTES,
	};
	bool ok = measure(files, n_files, &r.total, err);

	if (ok) {
		r.split.vocab = train_splitter_vocab(o, err);
		r.text = malloc(r.room);
		ok = r.split.vocab != NULL && (r.text != NULL || tok_fail(err, "out of memory"));
	}
	for (uint32_t i = 0; ok && i < n_files; i++) {
		ok = open_file(&r, files[i], err);
		if (!ok)
			break;
		ok = read_file(&r, err);
		if (r.fd != STDIN_FILENO)
			close(r.fd);
	}
	tok_vocab_free(r.split.vocab);
	free(r.split.word);
	free(r.split.mark);
	free(r.text);
	return ok;
}
