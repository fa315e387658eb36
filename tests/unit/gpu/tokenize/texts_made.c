/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mix.h>

#include "texts_made.h"
#include "unicode/utf8.h"

/* Case, caseless letters, marks, digits, symbols, white space, line ends, contractions, emoji. */
static const char *const piece[] = {"a", "s", "T", "'", "\xe2\x80\x99", "'s", "'T", "'re", "'ll",
	"don't", "I'LL", "''s", "\xc3\xa9", "\xc3\x89", "\xc3\x9f", "\xd0\x96", "\xe3\x81\x82",
	"\xe3\x83\xbc", "\xe4\xb8\xad\xe6\x96\x87", "\xed\x95\x9c", "\xd8\xa7", "\xd7\xa9",
	"\xe0\xb8\x81\xe0\xb8\xb3", "\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xb7", "\xcc\x81", "e\xcc\x81",
	"\xcc\xa3\xcc\x81", "\xcc\x81\xcc\xa3", "\xe0\xa4\xbe", "0", "7", "12", "123", "1234",
	"12345", "\xd9\xa3", "\xe2\x85\xa7", "\xc2\xbd", "!", ".", ",", "/", "//", "-", "_", "=",
	"+", "#", "$", "(", "){", "}", "<", "<|endoftext|>", "@", ":", "...", "\xe3\x80\x82",
	"\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80", " ",
	"  ", "    ", "\t", "\xc2\xa0", "\xe3\x80\x80", "\xe2\x80\xa8", "\v", "\n", "\r", "\r\n",
	"\n\n", " \n", "\n ", "\n  \n", "/\n", "\x01", "\x7f", "\xe2\x80\x8b", "\xef\xbb\xbf",
	"\xee\x80\x80", "the", " The", " of", " and", " in", " tokenization", "HTTPServer",
	"camelCase", " x", "XML", " antidisestablishmentarianism",
	"for (int i = 0; i < n; i++)\n\t", "return", " =",
	"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"
	"ABC",
	"\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82", " \xd0\xbc\xd0\xb8\xd1\x80",
	"Z\xc3\xbcrich", " \xce\xb5\xce\xbb\xce\xbb\xce\xb7\xce\xbd\xce\xb9\xce\xba\xce\xac"};
#define N_PIECES (sizeof(piece) / sizeof(piece[0]))

/* Blocks with characters that normalizers decompose, drop, reorder or take for blanks; and all. */
static const uint32_t block[][2] = {{0, 0x7f}, {0x80, 0x24f}, {0x2b0, 0x36f}, {0x370, 0x52f},
	{0x590, 0x6ff}, {0x900, 0xdff}, {0xe00, 0xfff}, {0x1100, 0x11ff}, {0x1ab0, 0x1aff},
	{0x1b00, 0x1b44}, {0x1dc0, 0x1fff}, {0x2000, 0x206f}, {0x20d0, 0x214f}, {0x3000, 0x30ff},
	{0x4e00, 0x4eff}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe00, 0xfe2f}, {0xff00, 0xffef},
	{0x110ba, 0x1114f}, {0x11300, 0x115bf}, {0x16ff0, 0x16ff1}, {0x1d15e, 0x1d1c0},
	{0x1f300, 0x1faff}, {0x20000, 0x2a6df}, {0x2f800, 0x2fa1f}, {0, 0xd7ff},
	{0xe000, 0x10ffff}};
#define N_BLOCKS (sizeof(block) / sizeof(block[0]))

static size_t
below(struct texts_made *m, size_t n)
{
	return (size_t)(dice_throw(&m->seed) % n);
}

static size_t
append(uint8_t *out, size_t n, size_t most, const char *text)
{
	const size_t len = strlen(text);

	if (len > most - n)
		return n;
	memcpy(out + n, text, len);
	return n + len;
}

/* Pieces, some of them several times. */
static size_t
from_pieces(struct texts_made *m, uint8_t *out, size_t most)
{
	const size_t of = below(m, 8) == 0 ? 6 : N_PIECES; /* few kinds: long pretokens */
	const size_t first = below(m, N_PIECES), pieces = 1 + below(m, 60);
	size_t n = 0;

	for (size_t i = 0; i < pieces; i++) {
		const char *const text = piece[(first + below(m, of)) % N_PIECES];
		const size_t times = below(m, 12) > 0 ? 1 : 1 + below(m, 1ull << below(m, 12));

		for (size_t k = 0; k < times; k++)
			n = append(out, n, most, text);
	}
	return n;
}

/* Characters of some blocks, with pieces between. */
static size_t
from_characters(struct texts_made *m, uint8_t *out, size_t most)
{
	const size_t runs = 1 + below(m, 30);
	size_t n = 0;

	for (size_t i = 0; i < runs; i++) {
		const uint32_t *const of = block[below(m, N_BLOCKS)];

		for (size_t k = below(m, 6); k > 0 && most - n >= 4; k--)
			n += tok_utf8_encode(
				of[0] + (uint32_t)below(m, of[1] - of[0] + 1), out + n);
		n = append(out, n, most, piece[below(m, N_PIECES)]);
	}
	return n;
}

/* A slice, whole characters. */
static size_t
from_file(struct texts_made *m, uint8_t *out, size_t most)
{
	const struct texts_file *const f = &m->file[below(m, m->n_files)];
	size_t n = below(m, 1ull << below(m, 15)), from = below(m, f->n);

	n = n < most ? n : most;
	while (from < f->n && (f->bytes[from] & 0xc0) == 0x80)
		from++;
	n = n < f->n - from ? n : f->n - from;
	while (n > 0 && from + n < f->n && (f->bytes[from + n] & 0xc0) == 0x80)
		n--;
	memcpy(out, f->bytes + from, n);
	return n;
}

/* Any bytes, of few values. */
static size_t
from_bytes(struct texts_made *m, uint8_t *out, size_t most)
{
	const size_t of = 1 + below(m, 256), n = below(m, 200) % (most + 1);
	const uint8_t first = (uint8_t)dice_throw(&m->seed);

	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)(first + below(m, of));
	return n;
}

/* Replace, in some texts, a byte by any other. */
static void
spoil(struct texts_made *m, uint8_t *out, size_t n)
{
	if (n > 0 && below(m, 16) == 0)
		out[below(m, n)] = (uint8_t)dice_throw(&m->seed);
}

size_t
texts_next(struct texts_made *m, uint8_t *out, size_t most)
{
	const size_t kind = below(m, 8);
	size_t n;

	if (kind == 0)
		n = from_bytes(m, out, most);
	else if (kind == 7 && m->characters)
		n = from_characters(m, out, most);
	else if (kind < 4 && m->n_files > 0)
		n = from_file(m, out, most);
	else
		n = from_pieces(m, out, most);
	spoil(m, out, n);
	return n;
}

bool
texts_read(struct texts_file *f, const char *path)
{
	FILE *const from = fopen(path, "rb");
	long n = -1;

	f->bytes = NULL;
	if (from == NULL)
		return false;
	if (fseek(from, 0, SEEK_END) == 0)
		n = ftell(from);
	rewind(from);
	if (n > 0)
		f->bytes = malloc((size_t)n);
	f->n = (size_t)n;
	if (f->bytes != NULL && fread(f->bytes, 1, f->n, from) != f->n) {
		free(f->bytes);
		f->bytes = NULL;
	}
	fclose(from);
	return f->bytes != NULL;
}

size_t
texts_slice(const struct texts_file *f, uint32_t i, size_t bytes, const uint8_t **slice)
{
	size_t from = (size_t)(i * 7919ull * 64 % (f->n - bytes - 3)), n = bytes;

	while ((f->bytes[from] & 0xc0) == 0x80)
		from++;
	while ((f->bytes[from + n] & 0xc0) == 0x80)
		n--;
	*slice = f->bytes + from;
	return n;
}
