/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the loaders of SentencePiece models. */
#include <stdlib.h>
#include <string.h>

#include "model_make.h"
#include "pieces.h"
#include "unicode/utf8.h"

int
tok_piece_byte(const char *text, size_t len)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *high, *low;

	if (len != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
		return -1;
	high = memchr(digits, text[3], 16);
	low = memchr(digits, text[4], 16);
	return high == NULL || low == NULL ? -1 : (int)((high - digits) << 4 | (low - digits));
}

size_t
tok_piece_bytes(const char *text, size_t len, uint8_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		if (len - i >= TOK_METASPACE_BYTES &&
			memcmp(text + i, TOK_METASPACE, TOK_METASPACE_BYTES) == 0) {
			out[n++] = ' ';
			i += TOK_METASPACE_BYTES;
		} else {
			out[n++] = (uint8_t)text[i++];
		}
	}
	return n;
}

bool
tok_piece_init(struct tok_model *m, uint32_t n_ids, size_t n_bytes, uint32_t n_merges,
	struct tok_error *err)
{
	if (!tok_model_init(m, n_ids + TOK_PIECE_PARTS,
		    n_bytes + (size_t)TOK_PIECE_PARTS * TOK_PIECE_PART_BYTES,
		    n_merges + n_ids + TOK_PIECE_PARTS, err))
		return false;
	m->n_tokens = n_ids;
	return true;
}

void
tok_piece_put(struct tok_model *m, uint32_t id, const char *text, size_t len, int byte)
{
	uint8_t *to = m->bytes + m->n_bytes;
	uint32_t n = 1;

	if (byte >= 0)
		*to = (uint8_t)byte;
	else
		n = (uint32_t)tok_piece_bytes(text, len, to);
	m->token[id] = (struct tok_model_token){.off = (uint32_t)m->n_bytes,
		.len = n,
		.byte = byte >= 0,
		.outside = memchr(text, ' ', len) != NULL};
	m->n_bytes += n;
}

static bool
is_character(const struct tok_model *m, uint32_t id)
{
	const struct tok_model_token *t = &m->token[id];

	return !t->special && !t->outside && !t->byte && t->len > 0 &&
	       tok_utf8_length(m->bytes[t->off]) == t->len;
}

/*
 * Without byte_fallback: for each byte that is not a character's token, add a part after all ids.
 */
static void
make_bytes(struct tok_model *m, uint32_t of_byte[TOK_BYTES])
{
	for (uint32_t i = 0; i < TOK_BYTES; i++) {
		const uint8_t byte = (uint8_t)i;

		if (of_byte[i] != TOK_NO_TOKEN)
			continue;
		of_byte[i] = m->n_tokens++;
		m->n_parts++;
		tok_model_put(m, of_byte[i], &byte, 1, false);
	}
}

/* Choose the token of each single byte: a character's own before those of byte_fallback. */
static bool
choose_bytes(
	struct tok_model *m, const char *file, uint32_t of_byte[TOK_BYTES], struct tok_error *err)
{
	memset(of_byte, 0xff, TOK_BYTES * sizeof(*of_byte));
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];

		if (t->len == 1 && is_character(m, id))
			of_byte[m->bytes[t->off]] = id;
	}
	if (m->unigram.sentencepiece && !m->unigram.byte_fallback) {
		make_bytes(m, of_byte);
		return true;
	}
	/* Without a token for U+2581, a blank would be encoded as the three bytes of U+2581. */
	if (of_byte[' '] == TOK_NO_TOKEN)
		return tok_fail(err, "%s: no piece is U+2581 alone: not implemented", file);
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		struct tok_model_token *t = &m->token[id];
		uint32_t *of;

		if (!t->byte || t->special)
			continue;
		of = &of_byte[m->bytes[t->off]];
		t->outside = *of != TOK_NO_TOKEN;
		*of = t->outside ? *of : id;
	}
	for (uint32_t i = 0; i < TOK_BYTES; i++) {
		if (of_byte[i] == TOK_NO_TOKEN)
			return tok_fail(err,
				"%s: no token <0x%02X>: not implemented (implemented: pieces with "
				"byte_fallback and all 256 bytes)",
				file, i);
	}
	return true;
}

/* The token of the n bytes at p, which begin a character. Adds one if there is none. */
static uint32_t
part_of(struct tok_model *m, struct tok_index *x, const uint8_t *p, uint32_t n)
{
	uint32_t id = tok_index_find(x, p, n);

	if (id == TOK_NO_TOKEN) {
		id = m->n_tokens++;
		m->n_parts++;
		tok_model_put(m, id, p, n, false);
		tok_index_add(x, id);
	}
	return id;
}

bool
tok_piece_characters(struct tok_model *m, const char *file, struct tok_error *err)
{
	const uint32_t n_ids = m->n_tokens;
	uint32_t of_byte[TOK_BYTES], n_tokens;
	struct tok_index x = {0};
	bool ok = choose_bytes(m, file, of_byte, err);

	if (ok && n_ids > TOK_MAX_IDS - TOK_PIECE_PARTS)
		ok = tok_fail(err, "%s: %u tokens, the limit is %u", file, n_ids,
			TOK_MAX_IDS - TOK_PIECE_PARTS);
	n_tokens = m->n_tokens;
	m->n_tokens = n_ids + TOK_PIECE_PARTS; /* the index has room for parts as well */
	ok = ok && tok_index_init(&x, m, err);
	m->n_tokens = n_tokens;
	for (uint32_t id = 0; ok && id < n_ids; id++) {
		const uint8_t *p = m->bytes + m->token[id].off;
		const uint32_t len = m->token[id].len;
		uint32_t left;

		if (len == 1 || !is_character(m, id))
			continue;
		left = of_byte[p[0]];
		for (uint32_t n = 2; n <= len; n++) {
			const uint32_t before = m->n_tokens;
			const uint32_t result = n == len ? id : part_of(m, &x, p, n);

			if (n == len || m->n_tokens > before)
				tok_model_put_merge(m, left, of_byte[p[n - 1]], result);
			left = result;
		}
	}
	tok_index_free(&x);
	return ok;
}
