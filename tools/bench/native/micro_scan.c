/* SPDX-License-Identifier: BSD-3-Clause */
/* Going through text: GPT-2's pretokens by the tokenizer's own scanner, and, for what the machine
 * can do at all, libc's memchr and a loop that looks at each byte. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <monotonic.h>
#include "micro.h"
#include "pretokenize/pretok.h"
#include "unicode/utf8.h"

/* What was found, and the sum of where: equal for equal work, and of use, so that it is done. */
struct found {
	uint64_t n, sum;
};

struct text {
	const struct tok_vocab *vocab;
	const uint8_t *at;
	size_t n;
};

typedef struct found text_scan(const struct text *t);

static struct found
pretokens(const struct text *t)
{
	struct tok_pretok_scan s = {.v = t->vocab, .text = t->at, .n = t->n, .last = true};
	size_t start[TOK_SCAN_BLOCK];
	struct found f = {0};

	while (s.at < s.n) {
		const uint32_t k = tok_pretok_scan(&s, start, TOK_SCAN_BLOCK);

		f.n += k;
		for (uint32_t i = 0; i < k; i++)
			f.sum += start[i];
	}
	return f;
}

static struct found
each(const struct text *t, uint8_t byte)
{
	const uint8_t *const end = t->at + t->n, *p = t->at;
	struct found f = {0};

	while (p < end && (p = memchr(p, byte, (size_t)(end - p))) != NULL) {
		f.n++;
		f.sum += (size_t)(p++ - t->at);
	}
	return f;
}

static struct found
blanks(const struct text *t)
{
	return each(t, ' ');
}

/* One long search: there is none. */
static struct found
zeros(const struct text *t)
{
	return each(t, '\0');
}

/* Letters (and what is not ASCII), digits, white space, the rest. */
static uint8_t class_of[256];

static void
make_classes(void)
{
	for (unsigned int c = 0; c < 256; c++) {
		const unsigned int lower = c | 0x20;

		if (c >= 0x80 || (lower >= 'a' && lower <= 'z'))
			class_of[c] = 3;
		else if (c >= '0' && c <= '9')
			class_of[c] = 2;
		else if (c == ' ' || (c >= '\t' && c <= '\r'))
			class_of[c] = 1;
	}
}

/* Where two of them meet. */
static struct found
borders(const struct text *t)
{
	struct found f = {0};
	uint8_t before = UINT8_MAX;

	for (size_t i = 0; i < t->n; i++) {
		if (class_of[t->at[i]] != before) {
			before = class_of[t->at[i]];
			f.n++;
			f.sum += i;
		}
	}
	return f;
}

/* As --how names them. */
static text_scan *const scans[] = {pretokens, blanks, zeros, borders};

/* The whole file, which must be UTF-8. False: told why. It is never given back. */
static bool
read_text(const char *path, struct text *t)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	struct stat st;

	if (f != NULL && fstat(fileno(f), &st) == 0 && st.st_size > 0) {
		data = malloc((size_t)st.st_size);
		if (data != NULL && fread(data, 1, (size_t)st.st_size, f) == (size_t)st.st_size) {
			t->at = data;
			t->n = (size_t)st.st_size;
		}
	}
	if (f != NULL)
		fclose(f);
	if (t->n == 0 || tok_utf8_scan(t->at, t->n).valid != t->n) {
		free(data);
		fprintf(stderr, "tokd-micro: --text %s: give a file of text in UTF-8\n", path);
		return false;
	}
	return true;
}

int
micro_scan(const struct micro_options *o)
{
	text_scan *const scan = scans[o->how];
	struct found first, f;
	uint64_t begin, ns, times = 0;
	struct tok_error err;
	struct text t = {0};

	if (!read_text(o->text, &t))
		return 1;
	t.vocab = tok_vocab_load(o->vocab, NULL, &err);
	if (t.vocab == NULL) {
		fprintf(stderr, "tokd-micro: --vocab: %s\n", err.text);
		return 1;
	}
	make_classes();
	first = scan(&t);
	begin = monotonic_ns();
	do {
		micro_barrier();
		f = scan(&t);
		times++;
		if (f.n != first.n || f.sum != first.sum) {
			fputs("tokd-micro: scan: found something else again\n", stderr);
			return 1;
		}
		ns = monotonic_ns() - begin;
	} while (ns < o->ms * 1000000);
	printf("{\"bytes\": %zu, \"times\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"found\": %" PRIu64
	       ", \"sum\": %" PRIu64 "}\n",
		t.n, times, ns, f.n, f.sum);
	return 0;
}
