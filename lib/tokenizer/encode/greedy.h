/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Longest match within pretokens (doc/internals/streaming.md), for any byte-level vocabulary. The
 * bytes of the open pretoken without ids are those that the current node of longest.h spells. The
 * functions correspond to those of bpe.h.
 */
#pragma once

#include "vocab.h"

void tok_greedy_open(struct tok_stream *s);

/* Append bytes to the open pretoken, and release ids that are certain. Returns the next free id.
 */
uint32_t *tok_greedy_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t *ids);

/* Release the ids that no later byte can change. */
uint32_t *tok_greedy_release(struct tok_stream *s, uint32_t *ids);

/* End the pretoken: release all its ids, and open the next one. */
uint32_t *tok_greedy_close(struct tok_stream *s, uint32_t *ids);
