/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offsets: the bytes of the text that each id came from. They are found by a second pass over an
 * encoded text, given its ids. Encoding without offsets costs nothing extra. The pass walks the
 * stages of the vocabulary (tok_stage.offsets). A stage changes how the source is read, or splits
 * it, and passes it to the next; the model gives ranges to ids.
 */
#pragma once

#include "source.h"

struct tok_offsets {
	const struct tok_vocab *vocab;
	const uint8_t *text;
	uint32_t flags;
	const uint32_t *ids;
	size_t n_ids;
	size_t next; /* index of the next id */
	bool later;  /* a text before an added token has ended */
	struct tok_range *range;
	uint32_t *word;	 /* NULL: not asked for */
	uint32_t n_word; /* index of the next pretoken */
};

/* Give ranges to the ids of a source. False: the ids are not those of this text. */
typedef bool tok_offsets_stage(
	struct tok_offsets *o, const struct tok_stage *const *next, struct tok_source *source);

tok_offsets_stage tok_offsets_added_text, tok_offsets_spm, tok_offsets_nfc, tok_offsets_metaspace,
	tok_offsets_added_normal, tok_offsets_prefix, tok_offsets_border;
/* The first of the steps of a normalizer; it stands for all of them. */
tok_offsets_stage tok_offsets_steps;
/* No stage: the same source, fresh. */
tok_offsets_stage tok_offsets_again;
/* Models: the next bytes of the source, source->left or all, are a text. */
tok_offsets_stage tok_offsets_bpe, tok_offsets_bpe_words, tok_offsets_wordpiece,
	tok_offsets_unigram;

/* Range of the next id, which must be `id` unless that is TOK_NO_TOKEN. NULL: the ids are not those
 * of this text. */
struct tok_range *tok_offsets_next(struct tok_offsets *o, uint32_t id);

/* The next n ids belong to this pretoken. */
static inline void
tok_offsets_word(struct tok_offsets *o, size_t n)
{
	for (size_t i = o->next; o->word != NULL && i < o->next + n; i++)
		o->word[i] = o->n_word;
}
