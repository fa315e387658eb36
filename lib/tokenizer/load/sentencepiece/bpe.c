/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Load a SentencePiece model; kind BPE as a list of merges. Two adjacent symbols are merged if
 * their joint text is a piece, the highest score first, the leftmost of equals (bpe_model.cc). The
 * text may be normalized by sentencepiece's normalizer first (spm_norm.h). Set-up only.
 */
#include <stdlib.h>
#include <string.h>

#include "build/model_make.h"
#include "build/pieces.h"
#include "sp_model.h"
#include "normalize/spm_norm.h"
#include "unicode/utf8.h"

/*
 * Does the model need sentencepiece's normalizer, or are there characters that become the unknown
 * piece? Without these, only blanks and U+2581 are replaced, which is faster.
 */
static bool
is_normalized(const struct tok_sp_model *sp)
{
	return sp->charsmap_bytes > 0 || sp->remove_extra_whitespaces || sp->whitespace_as_suffix ||
	       !sp->byte_fallback;
}

static bool
check(const char *file, const struct tok_sp_model *sp, struct tok_error *err)
{
	if (sp->kind != TOK_SP_BPE)
		return tok_fail(err,
			"%s: trainer_spec.model_type %u is not implemented (implemented: %u, "
			"Unigram, and %u, BPE)",
			file, sp->kind, TOK_SP_UNIGRAM, TOK_SP_BPE);
	return sp->escape_whitespaces ||
	       tok_fail(err,
		       "%s: normalizer_spec.escape_whitespaces false is not implemented "
		       "(implemented: true)",
		       file);
}

static bool
check_pieces(const char *file, const struct tok_sp_model *sp, struct tok_error *err)
{
	const uint32_t own_max =
		is_normalized(sp) ? TOK_SPM_WINDOW - 1 : (uint32_t)TOK_ADDED_BYTES_MAX;
	uint32_t n_unknown = 0;
	uint64_t work = 0;

	for (uint32_t id = 0; id < sp->n; id++) {
		const struct tok_sp_piece *p = &sp->piece[id];

		n_unknown += p->type == TOK_SP_UNKNOWN;
		if (!tok_model_add_work(&work, p->len, err))
			return false;
		if (p->type == TOK_SP_UNUSED)
			return tok_fail(err, "%s: piece %u is UNUSED: not implemented", file, id);
		if (p->type == TOK_SP_BYTE && tok_piece_byte(p->text, p->len) < 0)
			return tok_fail(err, "%s: piece %u is a BYTE and not <0x..>", file, id);
		if (p->type == TOK_SP_BYTE && !sp->byte_fallback)
			return tok_fail(err,
				"%s: piece %u is a BYTE, and trainer_spec.byte_fallback is false",
				file, id);
		if (p->type == TOK_SP_USER_DEFINED && p->len > own_max)
			return tok_fail(err,
				"%s: piece %u is USER_DEFINED and has %u bytes, the limit is %u",
				file, id, p->len, own_max);
	}
	if (n_unknown > 1 || (n_unknown == 0 && is_normalized(sp)))
		return tok_fail(err, "%s: %u pieces are UNKNOWN, expected one", file, n_unknown);
	return sp->n <= TOK_MAX_IDS - TOK_PIECE_PARTS ||
	       tok_fail(err, "%s: %u pieces, the limit is %u", file, sp->n,
		       TOK_MAX_IDS - TOK_PIECE_PARTS);
}

/* Add a piece that is searched in the text before encoding. */
static void
put_own(struct tok_model *m, uint32_t id, const struct tok_sp_piece *p, uint32_t what,
	uint32_t *bytes)
{
	memcpy(m->added_bytes + *bytes, p->text, p->len);
	m->added[m->n_added++] =
		(struct tok_model_added){.id = id, .what = what, .off = *bytes, .len = p->len};
	*bytes += p->len;
}

static void
put_piece(struct tok_model *m, uint32_t id, const struct tok_sp_piece *p)
{
	const bool known = p->type == TOK_SP_NORMAL || p->type == TOK_SP_BYTE;

	if (m->unigram.sentencepiece && (!known || memchr(p->text, ' ', p->len) != NULL)) {
		/* Keep its text as it is: decoding must not drop a blank in it. */
		tok_model_put(m, id, (const uint8_t *)p->text, p->len, p->type == TOK_SP_CONTROL);
		m->token[id].outside = true;
		return;
	}
	tok_piece_put(m, id, p->text, p->len,
		p->type == TOK_SP_BYTE ? tok_piece_byte(p->text, p->len) : -1);
	m->token[id].special = p->type == TOK_SP_CONTROL || p->type == TOK_SP_UNKNOWN;
	/* Found before encoding, so no merge makes it. */
	m->token[id].outside |= p->type == TOK_SP_USER_DEFINED;
}

/*
 * Add the tokens, and the USER_DEFINED pieces twice as added tokens: once for the normalizer, which
 * does not change them, and once for normalized text. The latter not if they have a U+0020, which
 * normalized text never has. Control pieces are not searched: they never match, nor do they hide
 * others.
 */
static bool
put_pieces(const struct tok_sp_model *sp, struct tok_model *m, struct tok_error *err)
{
	struct tok_model_unigram *u = &m->unigram;
	uint32_t added_bytes = 0;
	size_t bytes = 0;

	for (uint32_t id = 0; id < sp->n; id++)
		bytes += sp->piece[id].len;
	if (!tok_piece_init(m, sp->n, bytes + sp->unk_surface_bytes, (uint32_t)bytes, err))
		return false;
	m->added = calloc(sp->n, 2 * sizeof(*m->added));
	m->added_bytes = malloc(2 * bytes + 1);
	if (m->added == NULL || m->added_bytes == NULL)
		return tok_fail(err, "out of memory for %u pieces", sp->n);
	for (uint32_t id = 0; id < sp->n; id++) {
		const struct tok_sp_piece *p = &sp->piece[id];

		put_piece(m, id, p);
		if (p->type == TOK_SP_UNKNOWN)
			u->unk = id;
		if (p->type != TOK_SP_USER_DEFINED)
			continue;
		if (u->sentencepiece)
			put_own(m, id, p, 0, &added_bytes);
		if (memchr(p->text, ' ', p->len) == NULL)
			put_own(m, id, p, TOK_ADDED_NORMALIZED, &added_bytes);
	}
	if (u->sentencepiece) {
		u->unk_text = (struct tok_span){(uint32_t)m->n_bytes, sp->unk_surface_bytes};
		memcpy(m->bytes + m->n_bytes, sp->unk_surface, sp->unk_surface_bytes);
		m->n_bytes += sp->unk_surface_bytes;
	}
	return true;
}

/* ---- merges ---- */

struct by_score {
	float score;
	uint32_t len, id;
};

/* Of equal scores the longest first: merge_order.c relies on it. */
static int
compare_scores(const void *a, const void *b)
{
	const struct by_score *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	if (x->len != y->len)
		return x->len > y->len ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Add all ways to make a piece from two pieces. */
static void
put_merges(struct tok_model *m, const struct tok_index *x, uint32_t id, uint32_t rank)
{
	const uint8_t *p = m->bytes + m->token[id].off;
	const uint32_t len = m->token[id].len;

	for (uint32_t n = tok_utf8_length(*p); n < len; n += tok_utf8_length(p[n])) {
		const uint32_t left = tok_index_find(x, p, n);
		const uint32_t right = tok_index_find(x, p + n, len - n);

		if (left != TOK_NO_TOKEN && right != TOK_NO_TOKEN)
			m->merge[m->n_merges++] = (struct tok_model_merge){left, right, id, rank};
	}
}

/* Is each character of the piece a piece? Then it is a token by itself before it is merged. */
static bool
has_characters(const struct tok_model *m, const struct tok_index *x, uint32_t id)
{
	const uint8_t *p = m->bytes + m->token[id].off;

	for (uint32_t n = 0; n < m->token[id].len; n += tok_utf8_length(p[n])) {
		if (tok_index_find(x, p + n, tok_utf8_length(p[n])) == TOK_NO_TOKEN)
			return false;
	}
	return true;
}

static bool
put_all_merges(const char *file, const struct tok_sp_model *sp, struct tok_model *m,
	const struct tok_index *x, struct tok_error *err)
{
	struct by_score *order = malloc((sp->n + (size_t)1) * sizeof(*order));
	uint32_t n = 0, rank = m->n_merges;
	bool ok = order != NULL || tok_fail(err, "out of memory for %u pieces", sp->n);

	for (uint32_t id = 0; ok && id < sp->n; id++) {
		const struct tok_model_token *t = &m->token[id];

		if (sp->piece[id].type != TOK_SP_NORMAL || t->outside ||
			tok_utf8_length(m->bytes[t->off]) == t->len)
			continue;
		order[n++] = (struct by_score){sp->piece[id].score, t->len, id};
		ok = has_characters(m, x, id) ||
		     tok_fail(err, "%s: piece %u has a character that is no piece: not implemented",
			     file, id);
	}
	if (ok)
		qsort(order, n, sizeof(*order), compare_scores);
	for (uint32_t i = 0; ok && i < n; i++) {
		rank += i > 0 && order[i].score != order[i - 1].score;
		put_merges(m, x, order[i].id, rank);
	}
	free(order);
	return ok;
}

static bool
make_model(
	const char *file, const struct tok_sp_model *sp, struct tok_model *m, struct tok_error *err)
{
	struct tok_index x = {0};
	bool ok;

	m->pretok = TOK_PRETOK_SENTENCEPIECE;
	m->metaspace = (struct tok_metaspace){
		.stage = TOK_METASPACE_NORMALIZER,
		.prefix = sp->dummy_prefix ? TOK_PREFIX_TEXT : TOK_PREFIX_NONE,
		.strip = sp->dummy_prefix,
	};
	if (is_normalized(sp)) { /* this puts a blank before the text */
		m->metaspace.prefix = TOK_PREFIX_NONE;
		m->metaspace.strip = false;
		if (!tok_sp_normalizer(file, sp, m, err))
			return false;
	}
	ok = put_pieces(sp, m, err) && tok_piece_characters(m, file, err) &&
	     tok_index_init(&x, m, err);
	for (uint32_t id = 0; ok && id < sp->n; id++)
		ok = tok_index_add(&x, id) || tok_fail(err, "%s: piece %u occurs twice", file, id);
	ok = ok && put_all_merges(file, sp, m, &x, err);
	tok_index_free(&x);
	return ok;
}

bool
tok_load_sp_model(const char *path, struct tok_model *m, struct tok_error *err)
{
	const char *file = tok_shown_path(path);
	struct tok_sp_model sp = {0};
	size_t n;
	char *text = tok_read_file(path, &n, err);
	bool ok = text != NULL && tok_sp_read(file, (const uint8_t *)text, n, &sp, err);

	*m = (struct tok_model){.format = "sentencepiece"};
	if (ok && sp.denormalizes)
		ok = tok_fail(err, "%s: denormalizer_spec is not implemented", file);
	if (ok && sp.kind == TOK_SP_UNIGRAM)
		ok = tok_sp_unigram(file, &sp, m, err);
	else
		ok = ok && check(file, &sp, err) && check_pieces(file, &sp, err) &&
		     make_model(file, &sp, m, err);
	tok_sp_free(&sp);
	free(text);
	if (!ok)
		tok_model_free(m);
	return ok;
}
