/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stages: the machines of a vocabulary, in the order in which text passes them. Each passes what it
 * makes of the text to the next one. The last is the model, which writes ids. tok_vocab.stage lists
 * them; it is set when the vocabulary is loaded (stages_set.c), and ends with the model.
 */
#pragma once

#include "tok.h"

struct tok_offsets;
struct tok_source;

struct tok_stage {
	/* Begin a text. NULL: nothing to do. */
	void (*open)(struct tok_stream *s);
	/*
	 * Take n bytes of well-formed text, whole characters. `last`: the text ends here, or an
	 * added token follows. next[0] is the next stage. Ids are written to **ids, and *ids moves
	 * after them.
	 */
	enum tok_error_code (*feed)(struct tok_stream *s, const struct tok_stage *const *next,
		const uint8_t *p, size_t n, bool last, uint32_t **ids);
	/* Write the ids that no later byte can change. Returns the next free id. NULL: none wait.
	 */
	uint32_t *(*release)(struct tok_stream *s, uint32_t *ids);
	/* Bytes of text that wait in this stage; NULL: none. The model's are counted apart. */
	size_t (*waits)(const struct tok_stream *s);
	/* Find where ids come from (offsets/offsets.h). */
	bool (*offsets)(struct tok_offsets *o, const struct tok_stage *const *next,
		struct tok_source *source);
};

/* Added tokens, steps of a normalizer, sentencepiece's, U+2581, added tokens in normalized text,
 * a blank in front, borders of words, the model. */
#define TOK_STAGES_MAX (7 + 10)

/* The next stage takes text. */
static inline enum tok_error_code
tok_stage_next(struct tok_stream *s, const struct tok_stage *const *next, const uint8_t *p,
	size_t n, bool last, uint32_t **ids)
{
	return next[0]->feed(s, next + 1, p, n, last, ids);
}

/* All there are, in the order in which text may pass them; then the models. */
extern const struct tok_stage tok_stage_added_text, tok_stage_map_0, tok_stage_map_1,
	tok_stage_map_2, tok_stage_literal_0, tok_stage_literal_1, tok_stage_literal_2,
	tok_stage_literal_3, tok_stage_squeeze, tok_stage_strip, tok_stage_nfc, tok_stage_nfd,
	tok_stage_spm, tok_stage_metaspace, tok_stage_added_normal, tok_stage_prefix,
	tok_stage_border;
extern const struct tok_stage tok_stage_bpe, tok_stage_bpe_unknown, tok_stage_bpe_words,
	tok_stage_wordpiece, tok_stage_unigram;

/* State the steps of a normalizer. Returns the next free stage. */
const struct tok_stage **tok_stages_of_norm(const struct tok_vocab *v, const struct tok_stage **to);

/* Can a text be cut before a blank between two ASCII letters? (cuts.c) */
bool tok_cuts_before_blanks(const struct tok_vocab *v);

/* State the stages of a vocabulary whose tables are complete. */
void tok_stages_set(struct tok_vocab *v);
