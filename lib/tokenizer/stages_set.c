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
	return tok_has_unknown(v) ? &tok_stage_bpe_unknown : &tok_stage_bpe;
}

void
tok_stages_set(struct tok_vocab *v)
{
	const struct tok_stage **to = v->stage;

	if (v->added[TOK_ADDED_TEXT_SET].n > 0)
		*to++ = &tok_stage_added_text;
	if (v->unigram.norm.on)
		*to++ = &tok_stage_spm;
	else if (v->nfc)
		*to++ = &tok_stage_nfc;
	if (v->metaspace.stage == TOK_METASPACE_NORMALIZER)
		*to++ = &tok_stage_metaspace;
	if (v->added[TOK_ADDED_NORMAL_SET].n > 0)
		*to++ = &tok_stage_added_normal;
	if (v->metaspace.stage == TOK_METASPACE_PRETOKENIZER)
		*to++ = &tok_stage_metaspace;
	if (v->metaspace.stage == TOK_METASPACE_PREFIX)
		*to++ = &tok_stage_prefix;
	*to = model_of(v);
}
