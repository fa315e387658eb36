/* SPDX-License-Identifier: BSD-3-Clause */
/* BERT's text to words: whole words a block at a time, cut ones character by character. Hot path.
 */
#include "encode/block.h"
#include "encode/wordpiece.h"
#include "pretok.h"

/* Encode all whole words of the well-formed text at p. No word may be open. Returns the offset of
 * the open word, or n. */
static size_t
encode_whole(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	size_t end[TOK_BLOCK];
	struct tok_pretok_scan scan = {.v = s->vocab, .text = p, .n = n, .end = end};
	struct tok_block b;
	uint32_t have = 0; /* words that begin in the block */

	b.end = end;
	while (scan.at < n) {
		have += tok_pretok_scan(&scan, b.start + have, TOK_BLOCK - have);
		*ids = tok_block_encode(s, &b, scan.n_ends, p, p + n, *ids);
		b.start[0] = b.start[scan.n_ends]; /* the open word, if there is one */
		have -= scan.n_ends;
		scan.n_ends = 0;
	}
	if (have == 0)
		return n;
	if (!last)
		return b.start[0];
	end[0] = n;
	*ids = tok_block_encode(s, &b, 1, p, p + n, *ids);
	return n;
}

/* Keep the text of the open word if the block encoder may take the whole word at once (the cache,
 * match_left()). */
static void
keep(struct tok_stream *s, const uint8_t *p, size_t n)
{
	if (n == 0 || n > TOK_KEPT_MAX || s->vocab->wordpiece.norm.plain[*p] == 0)
		return;
	memcpy(s->kept, p, n);
	s->n_kept = (uint8_t)n;
}

void
tok_pretok_bert_feed(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	uint8_t text[TOK_KEPT_MAX + TOK_TOGETHER_MAX];
	const uint8_t *end = p + n;

	/* None of its ids was released. At least half of what is taken is new. */
	if (s->state == TOK_WORD_OPEN && s->n_kept > 0 && n > TOK_KEPT_MAX &&
		n <= TOK_TOGETHER_MAX) {
		memcpy(text, s->kept, s->n_kept);
		memcpy(text + s->n_kept, p, n);
		p = text;
		end = text + s->n_kept + n;
		tok_wordpiece_open(s);
	}
	s->n_kept = 0;
	while (p < end && s->state != TOK_WORD_NONE)
		p = tok_wordpiece_take(s, p, end, ids);
	if (p < end && s->vocab->pretok == TOK_PRETOK_BERT) { /* the only one that kernels know */
		p += encode_whole(s, p, (size_t)(end - p), last, ids);
		keep(s, p, (size_t)(end - p));
	}
	while (p < end)
		p = tok_wordpiece_take(s, p, end, ids);
	if (last)
		tok_wordpiece_finish(s, ids);
}
