/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tables that only vocabularies of SentencePiece pieces have. Set-up only. */
#include <stdlib.h>

#include "model_make.h"
#include "unicode/pages.h"
#include "pieces.h"
#include "unicode/utf8.h"
#include "vocab_table.h"

void
tok_pieces_mark(const struct tok_vocab *v, uint8_t *known, uint64_t *joins)
{
	for (uint32_t i = 0; i < v->n_ranks + v->n_unmerged; i++) {
		const uint32_t id = i < v->n_ranks ? v->ext[i] : v->unmerged[i - v->n_ranks];
		const struct tok_span span = v->span[id];
		const uint8_t *p = v->bytes + span.off, *end = p + span.len;

		if (id >= v->info.n_ids || (span.len == 1 && *p >= 0x80))
			continue; /* part of a character */
		while (p < end) {
			const uint32_t len = tok_utf8_length(*p);

			known[tok_utf8_decode(p, len)] = 1;
			p += len;
			if (p < end)
				joins[(uint32_t)p[-1] << 2 | *p >> 6] |= 1ull << (*p & 63);
		}
	}
}

bool
tok_pieces_build(struct tok_vocab *v, struct tok_error *err)
{
	uint8_t *known = calloc(TOK_CODE_POINTS, 1);
	struct tok_page_set set = {.page = known, .bytes = TOK_PAGE};

	if (known != NULL && tok_vocab_table_make(v, TOK_TABLE_JOINS, TOK_JOINS) &&
		tok_vocab_table_make(v, TOK_TABLE_CAT_PAGE, TOK_PAGES)) {
		tok_pieces_mark(v, known, v->joins);
		for (uint32_t i = 0; i < TOK_PAGES; i++) /* in place: pages only move down */
			v->cat_page[i] = tok_page_put(&set, known + (size_t)i * TOK_PAGE);
		if (tok_vocab_table_make(v, TOK_TABLE_CAT, set.n * TOK_PAGE))
			memcpy(v->cat, set.page, set.n * TOK_PAGE);
	}
	free(known);
	return v->cat != NULL || tok_fail(err, "out of memory for the characters of pieces");
}
