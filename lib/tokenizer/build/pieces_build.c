/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tables that only vocabularies of SentencePiece pieces have. Set-up only. */
#include <stdlib.h>

#include "model_make.h"
#include "unicode/pages.h"
#include "pieces.h"
#include "unicode/utf8.h"
#include "vocab_table.h"

/*
 * Mark the code points that occur in tokens, and set the bits of `joins`. Both must be zeroed.
 */
static void
mark(const struct tok_vocab *v, uint32_t join_shift, uint8_t *known, uint64_t *joins)
{
	for (uint32_t i = 0; i < v->n_ranks + v->n_unmerged; i++) {
		const uint32_t id = i < v->n_ranks ? v->ext[i] : v->unmerged[i - v->n_ranks];
		const struct tok_span span = v->span[id];
		const uint8_t *p = v->bytes + span.off, *end = p + span.len;

		if (id >= v->info.n_ids || (span.len == 1 && *p >= 0x80))
			continue; /* part of a character */
		for (uint32_t left = UINT32_MAX; p < end;) {
			const uint32_t len = tok_utf8_length(*p), right = tok_utf8_decode(p, len);

			known[right] = 1;
			if (left != UINT32_MAX) {
				const uint32_t bit = tok_join_bit(join_shift, left, right);

				joins[bit / 64] |= 1ull << bit % 64;
			}
			left = right;
			p += len;
		}
	}
}

/* Bits for each pair that is not ASCII: so few of the other pairs share their bit with one. */
#define JOIN_SHARE 32u
#define MOST_BITS (1u << 24)
#define FEWEST_BITS (1u << 12)

/* Make v->joins: of the size that the number of pairs asks for. `known` and v->cat are not there
 * yet. */
static bool
build_joins(struct tok_vocab *v, uint8_t *known)
{
	const uint32_t most = (TOK_JOINS_ASCII + MOST_BITS) / 64;
	uint64_t *joins = calloc(most, sizeof(*joins));
	uint32_t pairs = 0, bits = FEWEST_BITS;

	if (joins == NULL)
		return false;
	mark(v, 64 - (uint32_t)__builtin_ctz(MOST_BITS), known, joins);
	for (uint32_t i = TOK_JOINS_ASCII / 64; i < most; i++)
		pairs += (uint32_t)__builtin_popcountll(joins[i]);
	free(joins);
	while (bits < MOST_BITS && bits / JOIN_SHARE < pairs)
		bits *= 2;
	if (!tok_vocab_table_make(v, TOK_TABLE_JOINS, (TOK_JOINS_ASCII + bits) / 64))
		return false;
	tok_vocab_shifts(v);
	mark(v, v->join_shift, known, v->joins);
	return true;
}

/* Parts of characters are never given out. A real id in their place makes `ext` easy to check. */
static void
drop_parts(struct tok_vocab *v)
{
	for (uint32_t r = TOK_BYTES; r < v->n_ranks; r++) {
		if (v->ext[r] >= v->info.n_ids)
			v->ext[r] = v->ext[v->split[r].left];
	}
}

bool
tok_pieces_build(struct tok_vocab *v, struct tok_error *err)
{
	uint8_t *known = calloc(TOK_CODE_POINTS, 1);
	struct tok_page_set set = {.page = known, .bytes = TOK_PAGE};

	if (known != NULL && build_joins(v, known) &&
		tok_vocab_table_make(v, TOK_TABLE_CAT_PAGE, TOK_PAGES)) {
		for (uint32_t i = 0; i < TOK_PAGES; i++) /* in place: pages only move down */
			v->cat_page[i] = tok_page_put(&set, known + (size_t)i * TOK_PAGE);
		if (tok_vocab_table_make(v, TOK_TABLE_CAT, set.n * TOK_PAGE))
			memcpy(v->cat, set.page, set.n * TOK_PAGE);
	}
	free(known);
	drop_parts(v);
	return v->cat != NULL || tok_fail(err, "out of memory for the characters of pieces");
}
