/* SPDX-License-Identifier: BSD-3-Clause */
/* Many texts, encoded by some threads into one array. The GIL is not held. */
#pragma once

#include <tok.h>

#include "encoder.h"
#include "pool.h"
#include "signals.h"

#define BATCH_THREADS_MAX (POOL_THREADS_MAX + 1)

#define BATCH_TEXT_COST 64 /* what a text costs beside its bytes, in bytes */

/* How many ids to keep, the template's with them, and which of the text's go. */
struct batch_cut {
	size_t most;
	bool left;
	uint32_t n_before, n_after; /* of the template, where `flags` ask for it */
};

struct batch_chunk;

struct batch {
	const struct tok_vocab *vocab;
	uint32_t flags;
	struct batch_cut cut;
	const struct encoder_text *text;
	size_t n_texts;
	struct encoder *encoder[BATCH_THREADS_MAX]; /* one a thread */
	int64_t *splits; /* n_texts + 1: where the ids of each text begin */
	/* by batch_plan() */
	uint32_t n_threads;
	size_t cost; /* of all texts, in bytes */
	struct batch_chunk *chunk;
	size_t n_chunks;
	/* results */
	size_t n_ids;
	size_t failed; /* the first text that was refused, and why; TOK_MORE: memory is short;
			  TOK_BAD without an error: it has a surrogate, or an exception is set */
	struct tok_result why;
};

struct batch_cut batch_cut_of(const struct tok_vocab *v, uint32_t flags, size_t most, bool left);

/* Drop what is too much of n items of `size` bytes, one for each id of a text; what is left. */
size_t batch_cut(void *items, size_t size, size_t n, const struct batch_cut *cut);

/*
 * Encode only the beginning of a text that has far more ids than are kept, into the encoder's room
 * from `used` on; those kept are then all there is. False: encode all of it.
 */
bool batch_head(const struct tok_vocab *v, struct encoder *e, size_t used,
	const struct encoder_text *text, uint32_t flags, const struct batch_cut *cut,
	struct tok_result *r);

/*
 * Divide the texts among at most `threads` threads, of which there are no more than there is work
 * for. False if memory is short. batch_free() frees what it allocated.
 */
bool batch_plan(struct batch *b, uint32_t threads);
void batch_free(struct batch *b);

/*
 * Encode a batch with its plan, encoders and splits. The ids are with the encoders;
 * batch_take() copies all n_ids of them. False: see `why`.
 */
bool batch_encode(struct batch *b);
void batch_take(const struct batch *b, uint32_t *ids);
