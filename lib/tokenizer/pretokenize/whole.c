/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole pretokens: find borders block by block, and encode the pretokens between. Hot path. */
#include "whole.h"
#include "encode/block.h"
#include "pretok.h"

static_assert(TOK_BLOCK > TOK_SCAN_BLOCK, "a scan fits behind what is there");

/* False: more than TOK_CARRY_MAX bytes of a pretoken were uncertain. */
static bool
encode_block(struct tok_stream *s, struct tok_block *b, uint32_t n, const uint8_t *p,
	const uint8_t *end, uint32_t **ids)
{
	uint32_t *next = tok_block_encode(s, b, n, p, end, *ids);

	if (next != NULL)
		*ids = next;
	return next != NULL;
}

size_t
tok_encode_whole(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids)
{
	struct tok_pretok_scan scan = {.v = s->vocab, .text = p, .n = n, .last = last};
	struct tok_block b;
	uint32_t have = 0; /* pretokens that begin in the block */

	b.end = b.start + 1;
	while (scan.at < n) {
		have += tok_pretok_scan(&scan, b.start + have, TOK_BLOCK - have);
		if (have == 0 || (last && scan.at == n))
			break;
		if (!encode_block(s, &b, have - 1, p, p + n, ids))
			return TOK_NO_BORDER;	/* the ids before it are valid */
		b.start[0] = b.start[have - 1]; /* the next block has its end */
		have = 1;
	}
	if (have == 0)
		return n;
	if (!last)
		return b.start[0];
	b.start[have] = n;
	return encode_block(s, &b, have, p, p + n, ids) ? n : TOK_NO_BORDER;
}
