/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The open pretoken: one whose end is not known yet. Exact encoding keeps its bytes while they are
 * few. When it ends, the whole is encoded like a pretoken that was never cut, and the ids that were
 * released before are left out. Hot path.
 */
#pragma once

#include "vocab.h"

/* Begin a pretoken with the next byte. */
void tok_pretoken_open(struct tok_stream *s);

/* Append bytes to it. False: more than TOK_CARRY_MAX bytes are uncertain. */
bool tok_pretoken_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t **ids);

/* Release the ids that no later byte can change. Returns the next free id. */
uint32_t *tok_pretoken_release(struct tok_stream *s, uint32_t *ids);

/* The machine of bpe_stream.c forgets the kept bytes, so that it can encode others. It takes them
 * again when it is asked. */
void tok_pretoken_rewind(struct tok_stream *s);

/* End the pretoken: release all its ids, and open the next one. */
uint32_t *tok_pretoken_close(struct tok_stream *s, uint32_t *ids);

/* Its bytes whose ids are not released yet. */
static inline size_t
tok_pretoken_waits(const struct tok_stream *s)
{
	return s->keeps ? (size_t)s->n_kept - s->kept_given : s->n_pos;
}
