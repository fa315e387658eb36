/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a worker serves texts by: vocabularies and limits. A text keeps those that it began with; a
 * reload gives the worker new ones for the texts that begin then, and frees the old ones when the
 * worker has left them.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tok.h>

#include "options/options.h"

struct tokb; /* tokd/block_keys.h */

struct tokd_terms {
	/* The worker, while it begins texts with them, and each open text. Only the worker writes
	 * it. 0: it has left them, and another thread that has seen that may free them. */
	_Atomic uint32_t users;
	uint32_t n_vocabs;
	uint32_t max_text;  /* --max-text */
	uint32_t tok_flags; /* enum tok_flags */
	/* In TSC ticks; for all texts from then on. */
	uint64_t open_ticks, finished_ticks;
	struct tokd_vocab {
		const struct tok_vocab *tok;
		struct tok_cache *cache;
		struct tokb *keys; /* before a text's first id; NULL: without --block-keys */
		uint32_t checksum;
		bool short_ids;	  /* all are below 2^16 */
		uint32_t longest; /* bytes that an id decodes to, at most */
	} vocab[TOKD_VOCABS_MAX]; /* the first is the default */
};

static inline void
tokd_terms_join(struct tokd_terms *t)
{
	atomic_store_explicit(&t->users, atomic_load_explicit(&t->users, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* The caller's last use of them. */
static inline void
tokd_terms_leave(struct tokd_terms *t)
{
	atomic_store_explicit(&t->users, atomic_load_explicit(&t->users, memory_order_relaxed) - 1,
		memory_order_release);
}

static inline bool
tokd_terms_are_left(const struct tokd_terms *t)
{
	return atomic_load_explicit(&t->users, memory_order_acquire) == 0;
}
