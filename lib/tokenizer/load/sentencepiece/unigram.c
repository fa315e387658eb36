/* SPDX-License-Identifier: BSD-3-Clause */
/* A SentencePiece model of kind Unigram: T5, mT5, XLM-R (unigram_model.cc). Set-up only. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "build/model_make.h"
#include "build/parts.h"
#include "build/pieces.h"
#include "sp_model.h"
#include "normalize/spm_norm.h"
#include "encode/unigram.h"

#define UNK_PENALTY 10.0f /* kUnkPenalty */

static bool
check(const char *file, const struct tok_sp_model *sp, struct tok_error *err)
{
	uint32_t n_normal = 0, n_unknown = 0;

	if (!sp->escape_whitespaces)
		return tok_fail(err,
			"%s: normalizer_spec.escape_whitespaces false is not implemented "
			"(implemented: true)",
			file);
	for (uint32_t id = 0; id < sp->n; id++) {
		const struct tok_sp_piece *p = &sp->piece[id];

		n_normal += p->type == TOK_SP_NORMAL;
		n_unknown += p->type == TOK_SP_UNKNOWN;
		if (p->type == TOK_SP_BYTE && tok_piece_byte(p->text, p->len) < 0)
			return tok_fail(err, "%s: piece %u is a BYTE and not <0x..>", file, id);
		if (p->type == TOK_SP_BYTE && !sp->byte_fallback)
			return tok_fail(err,
				"%s: piece %u is a BYTE, and trainer_spec.byte_fallback is false",
				file, id);
		if (p->type == TOK_SP_USER_DEFINED && p->len >= TOK_SPM_WINDOW)
			return tok_fail(err,
				"%s: piece %u is USER_DEFINED and has %u bytes, the limit for Unigram "
				"is %u",
				file, id, p->len, TOK_SPM_WINDOW - 1);
	}
	if (n_unknown != 1)
		return tok_fail(err, "%s: %u pieces are UNKNOWN, expected one", file, n_unknown);
	if (n_normal == 0)
		return tok_fail(err, "%s: no piece is NORMAL, expected one or more", file);
	return sp->n <= TOK_MAX_IDS ||
	       tok_fail(err, "%s: %u pieces, the limit is %u", file, sp->n, TOK_MAX_IDS);
}

static float
score_of(const struct tok_sp_piece *p)
{
	if (p->type == TOK_SP_USER_DEFINED) /* GetUserDefinedScore */
		return (float)(0.1 * ((int)p->len - 1));
	return p->score;
}

/*
 * Add a token, with blanks for U+2581: normalized text has no other blanks. Pieces that text cannot
 * match keep their text.
 */
static void
put_piece(struct tok_model *m, uint32_t id, const struct tok_sp_piece *p)
{
	const bool known = p->type == TOK_SP_NORMAL || p->type == TOK_SP_USER_DEFINED;
	uint8_t bytes[TOK_MAX_TOKEN_BYTES]; /* tok_sp_read checks the length */
	uint32_t n = p->len;

	if (p->type == TOK_SP_BYTE) {
		bytes[0] = (uint8_t)tok_piece_byte(p->text, p->len);
		n = 1;
	} else if (known && memchr(p->text, ' ', p->len) == NULL) {
		n = (uint32_t)tok_piece_bytes(p->text, p->len, bytes);
	} else {
		memcpy(bytes, p->text, p->len);
	}
	tok_model_put(m, id, bytes, n, p->type == TOK_SP_CONTROL);
	m->token[id].byte = p->type == TOK_SP_BYTE;
	m->token[id].outside = !known || memchr(p->text, ' ', p->len) != NULL;
	m->unigram.score[id] = (double)score_of(p);
}

/* Add a USER_DEFINED piece, which the normalizer searches for. */
static void
put_own(struct tok_model *m, uint32_t id, const struct tok_sp_piece *p, uint32_t *bytes)
{
	memcpy(m->added_bytes + *bytes, p->text, p->len);
	m->added[m->n_added++] = (struct tok_model_added){.id = id, .off = *bytes, .len = p->len};
	*bytes += p->len;
}

static bool
put_pieces(const struct tok_sp_model *sp, struct tok_model *m, struct tok_error *err)
{
	struct tok_model_unigram *u = &m->unigram;
	float least = FLT_MAX;
	uint32_t own = 0;
	size_t bytes = 0;

	for (uint32_t id = 0; id < sp->n; id++)
		bytes += sp->piece[id].len;
	if (!tok_model_init(m, sp->n, bytes + sp->unk_surface_bytes, 0, err))
		return false;
	u->score = calloc(sp->n, sizeof(*u->score));
	m->added = calloc(sp->n, sizeof(*m->added));
	m->added_bytes = malloc(bytes + 1);
	if (u->score == NULL || m->added == NULL || m->added_bytes == NULL)
		return tok_fail(err, "out of memory for %u pieces", sp->n);
	for (uint32_t id = 0; id < sp->n; id++) {
		const struct tok_sp_piece *p = &sp->piece[id];

		put_piece(m, id, p);
		if (p->type == TOK_SP_USER_DEFINED)
			put_own(m, id, p, &own);
		if (p->type == TOK_SP_UNKNOWN)
			u->unk = id;
		if (p->type == TOK_SP_NORMAL && p->score < least)
			least = p->score;
	}
	u->n_pieces = sp->n;
	u->unknown = (double)(least - UNK_PENALTY);
	u->unk_text = (struct tok_span){(uint32_t)m->n_bytes, sp->unk_surface_bytes};
	memcpy(m->bytes + m->n_bytes, sp->unk_surface, sp->unk_surface_bytes);
	m->n_bytes += sp->unk_surface_bytes;
	return true;
}

static bool
put_charsmap(
	const char *file, const struct tok_sp_model *sp, struct tok_model *m, struct tok_error *err)
{
	if (sp->charsmap_bytes == 0)
		return true;
	m->unigram.charsmap = malloc(sp->charsmap_bytes);
	if (m->unigram.charsmap == NULL)
		return tok_fail(err, "out of memory for a map of %zu bytes", sp->charsmap_bytes);
	memcpy(m->unigram.charsmap, sp->charsmap, sp->charsmap_bytes);
	return tok_spm_split_charsmap(&m->unigram, sp->charsmap_bytes) ||
	       tok_fail(err,
		       "%s: normalizer_spec.precompiled_charsmap: expected a trie's size, the trie and "
		       "its texts",
		       file);
}

bool
tok_sp_normalizer(
	const char *file, const struct tok_sp_model *sp, struct tok_model *m, struct tok_error *err)
{
	const bool squeeze = sp->remove_extra_whitespaces;

	m->unigram = (struct tok_model_unigram){
		.strip_left = squeeze,
		.strip_right = squeeze,
		.squeeze = squeeze,
		.sentencepiece = true,
		.dummy = !sp->dummy_prefix	    ? TOK_DUMMY_NONE
			 : sp->whitespace_as_suffix ? TOK_DUMMY_SUFFIX
						    : TOK_DUMMY_PREFIX,
		.blanks = true,
		.byte_fallback = sp->byte_fallback,
		.decode_strips = sp->dummy_prefix || squeeze,
	};
	return put_charsmap(file, sp, m, err);
}

bool
tok_sp_unigram(
	const char *file, const struct tok_sp_model *sp, struct tok_model *m, struct tok_error *err)
{
	m->kind = TOK_KIND_UNIGRAM;
	return check(file, sp, err) && tok_sp_normalizer(file, sp, m, err) &&
	       put_pieces(sp, m, err);
}
