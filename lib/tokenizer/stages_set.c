/* SPDX-License-Identifier: BSD-3-Clause */
/* Which stages a vocabulary has. Set-up only. */
#include "vocab.h"

static const struct tok_stage *
model_of(const struct tok_vocab *v)
{
	switch (v->kind) {
	case TOK_KIND_WORDPIECE:
		return &tok_stage_wordpiece;
	case TOK_KIND_UNIGRAM:
		return &tok_stage_unigram;
	case TOK_KIND_BPE:
		break;
	}
	if (v->word_end)
		return &tok_stage_bpe_words;
	return tok_has_unknown(v) ? &tok_stage_bpe_unknown : &tok_stage_bpe;
}

const struct tok_stage **
tok_stages_of_norm(const struct tok_vocab *v, const struct tok_stage **to)
{
	static const struct tok_stage *const map[TOK_MAPS_MAX] = {
		&tok_stage_map_0, &tok_stage_map_1, &tok_stage_map_2};
	static const struct tok_stage *const literal[TOK_LITERALS_MAX] = {&tok_stage_literal_0,
		&tok_stage_literal_1, &tok_stage_literal_2, &tok_stage_literal_3};
	static const struct tok_stage *const others[TOK_NORM_KINDS] = {
		[TOK_NORM_FORM_C] = &tok_stage_nfc,
		[TOK_NORM_FORM_D] = &tok_stage_nfd,
		[TOK_NORM_SQUEEZE] = &tok_stage_squeeze,
		[TOK_NORM_STRIP] = &tok_stage_strip,
	};

	for (uint32_t i = 0; i < v->norm.n; i++) {
		const struct tok_norm_step step = v->norm.step[i];

		*to++ = step.kind == TOK_NORM_MAP	? map[step.arg]
			: step.kind == TOK_NORM_LITERAL ? literal[step.arg]
							: others[step.kind];
	}
	return to;
}

void
tok_stages_set(struct tok_vocab *v)
{
	const struct tok_stage **to = v->stage;

	if (v->added[TOK_ADDED_TEXT_SET].n > 0)
		*to++ = &tok_stage_added_text;
	to = tok_stages_of_norm(v, to);
	if (v->unigram.norm.on)
		*to++ = &tok_stage_spm;
	if (v->metaspace.stage == TOK_METASPACE_NORMALIZER)
		*to++ = &tok_stage_metaspace;
	if (v->added[TOK_ADDED_NORMAL_SET].n > 0)
		*to++ = &tok_stage_added_normal;
	if (v->metaspace.stage == TOK_METASPACE_PRETOKENIZER)
		*to++ = &tok_stage_metaspace;
	if (v->metaspace.stage == TOK_METASPACE_PREFIX)
		*to++ = &tok_stage_prefix;
	if (v->pretok == TOK_PRETOK_WORDS || v->word_end == TOK_WORD_END_SPECIALS)
		*to++ = &tok_stage_border;
	*to = model_of(v);
	v->info.cuts_before_blanks = tok_cuts_before_blanks(v);
}
