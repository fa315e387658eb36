/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids of the open pretoken: calls the exact or the greedy functions. Hot path. */
#pragma once

#include "bpe.h"
#include "greedy.h"

/* Begin a pretoken with the next byte. */
static inline void
tok_pretoken_open(struct tok_stream *s)
{
	if (s->vocab->longest.node != NULL)
		tok_greedy_open(s);
	else
		tok_bpe_open(s);
}

/* Append bytes to it. False: more than TOK_CARRY_MAX bytes are uncertain. */
static inline bool
tok_pretoken_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids)
{
	if (s->vocab->longest.node == NULL)
		return tok_bpe_push(s, p, n, ids);
	*ids = tok_greedy_push(s, p, n, *ids);
	return true;
}

/* Give out the ids that no later byte can change. Returns the next free id. */
static inline uint32_t *
tok_pretoken_release(struct tok_stream *s, uint32_t *ids)
{
	return s->vocab->longest.node != NULL ? tok_greedy_release(s, ids)
					      : tok_bpe_release(s, ids);
}

/* End the pretoken: give out all its ids, and open the next one. */
static inline uint32_t *
tok_pretoken_close(struct tok_stream *s, uint32_t *ids)
{
	return s->vocab->longest.node != NULL ? tok_greedy_close(s, ids) : tok_bpe_close(s, ids);
}
