/* SPDX-License-Identifier: BSD-3-Clause */
/* tok bench: read files, and cut them into texts of similar length. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "cli.h"

#define ROOM_FIRST ((size_t)1 << 20) /* first size of the text buffer; doubled when full */
#define TOKEN_BYTES 16		     /* upper estimate of the average bytes per token */
#define TRIES 6			     /* attempts to find a slice with --tokens tokens */

struct text {
	uint8_t *data;
	size_t n, room;
};

/* ---- reading ---- */

static int
read_all(struct text *t, int fd, const char *name)
{
	ssize_t got;

	do {
		if (t->n == t->room) {
			size_t room = t->room == 0 ? ROOM_FIRST : t->room * 2;
			uint8_t *more = realloc(t->data, room);

			if (more == NULL)
				return cli_error(CLI_FAILED, "%s: out of memory", name);
			t->data = more;
			t->room = room;
		}
		got = read(fd, t->data + t->n, t->room - t->n);
		t->n += got > 0 ? (size_t)got : 0;
		if (t->n > BENCH_BYTES_MAX)
			return cli_error(CLI_FAILED, "%s: more than %u MiB of text in all", name,
				BENCH_BYTES_MAX >> 20);
	} while (got > 0 || (got < 0 && errno == EINTR));
	return got == 0 ? 0 : cli_error(CLI_FAILED, "%s: %s", name, strerror(errno));
}

static int
read_file(struct text *t, const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC), code;

	if (fd < 0)
		return cli_error(CLI_FAILED, "%s: %s", name, strerror(errno));
	code = read_all(t, fd, name);
	close(fd);
	return code;
}

/* ---- cutting ---- */

/* Length of a slice: about `n` bytes, up to the end of a character. */
static size_t
whole_characters(const uint8_t *text, size_t n, size_t left)
{
	for (int more = 0; more < 3 && n < left && (text[n] & 0xc0) == 0x80; more++)
		n++;
	return n < left ? n : left;
}

/*
 * Length of a slice with about `tokens` tokens. *guess: its bytes, to start the next search from.
 */
static size_t
cut_tokens(struct bench *b, const uint8_t *text, size_t left, uint64_t tokens, size_t *guess)
{
	size_t n = 0;

	for (int i = 0; i < TRIES; i++) {
		struct tok_result r;

		n = whole_characters(text, *guess, left);
		r = tok_encode(b->vocab, b->cache, text, n, b->flags, b->ids, b->room);
		if (r.produced == tokens || (n == left && r.produced < tokens))
			break;
		*guess = r.produced == 0 ? n * 2 : (n * tokens + r.produced / 2) / r.produced;
		if (*guess < 1)
			*guess = 1;
		if (*guess > TOKEN_BYTES * tokens) /* more does not fit the room for ids */
			*guess = TOKEN_BYTES * tokens;
	}
	return n;
}

static bool
append(struct slices *s, const uint8_t *text, size_t n)
{
	if ((s->count & (s->count - 1)) == 0) {
		size_t room = s->count == 0 ? 1 : (size_t)s->count * 2;
		struct slice *more = realloc(s->slice, room * sizeof(*more));

		if (more == NULL)
			return false;
		s->slice = more;
	}
	s->slice[s->count++] = (struct slice){.text = text, .text_len = (uint32_t)n};
	if (n > s->max_text)
		s->max_text = (uint32_t)n;
	return true;
}

/* Slices of one file. A shorter rest at its end is dropped. */
static int
cut_file(struct slices *s, struct bench *b, const struct bench_cut *cut, const uint8_t *text,
	size_t n, const char *name)
{
	size_t guess = 4 * cut->tokens, at = 0, len, made = 0;

	for (; at < n; at += len, made++) {
		size_t left = n - at;

		if (cut->tokens > 0)
			len = cut_tokens(b, text + at, left, cut->tokens, &guess);
		else
			len = cut->bytes > 0 ? whole_characters(text + at, cut->bytes, left) : left;
		if (at + len == n && made > 0)
			break;
		if (!append(s, text + at, len))
			return cli_error(CLI_FAILED, "%s: out of memory", name);
	}
	return 0;
}

/* The encoder that finds where slices end; the measured one has another cache. */
static int
open_counter(struct bench *b, const struct bench_cut *cut)
{
	b->room = tok_encode_bound(b->vocab, TOKEN_BYTES * cut->tokens + 3, b->flags);
	b->ids = malloc(sizeof(*b->ids) * b->room);
	b->cache = tok_cache_create(b->vocab, 0, NULL);
	return b->ids != NULL && b->cache != NULL ? 0 : cli_error(CLI_FAILED, "out of memory");
}

static int
cut_all(struct slices *texts, const struct tok_vocab *v, uint32_t flags,
	const struct bench_cut *cut, const size_t *end, char **files, int n_files)
{
	struct bench b = {.vocab = v, .flags = flags};
	int code = open_counter(&b, cut);
	size_t begin = 0;

	for (int i = 0; code == 0 && i < n_files; begin = end[i++])
		code = cut_file(texts, &b, cut, texts->file + begin, end[i] - begin, files[i]);
	tok_cache_free(b.cache);
	free(b.ids);
	return code;
}

int
bench_texts(struct slices *texts, const struct tok_vocab *v, uint32_t flags,
	const struct bench_cut *cut, char **files, int n_files)
{
	static char *standard_input[] = {"-"};
	struct text all = {0};
	size_t *end;
	int code = 0;

	if (n_files == 0) {
		files = standard_input;
		n_files = 1;
	}
	end = calloc((size_t)n_files, sizeof(*end));
	if (end == NULL)
		return cli_error(CLI_FAILED, "out of memory");
	for (int i = 0; code == 0 && i < n_files; i++) {
		code = strcmp(files[i], "-") == 0 ? read_all(&all, STDIN_FILENO, "standard input")
						  : read_file(&all, files[i]);
		end[i] = all.n;
	}
	texts->file = all.data;
	if (code == 0)
		code = cut_all(texts, v, flags, cut, end, files, n_files);
	if (code == 0 && texts->count == 0)
		code = cli_error(CLI_FAILED, "there is no text: give a file that is not empty");
	free(end);
	return code;
}
