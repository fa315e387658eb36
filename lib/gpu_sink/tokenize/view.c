/* SPDX-License-Identifier: BSD-3-Clause */
/* Vocabularies as a device sees them. Set-up only. */
#include "text.h"
#include "build/vocab_table.h"
#include "normalize/added.h"
#include "unicode/nfc_tables.h"

#define NFC_PAGES (TOK_CODE_POINTS / 256)

const char *
tokg_text_status_name(enum tokg_text_status status)
{
	switch (status) {
	case TOKG_TEXT_OK:
		return "ok";
	case TOKG_TEXT_TOO_LONG:
		return "the text or one of its pretokens is too long";
	case TOKG_TEXT_NOT_PLAIN:
		return "malformed UTF-8, or text that is not normalized";
	case TOKG_TEXT_ROOM:
		return "more ids than there is room for";
	}
	return "unknown status";
}

/* Does text pass a stage that devices do not have, whatever it is? */
static bool
has_other_stages(const struct tok_vocab *v)
{
	for (const struct tok_stage *const *stage = v->stage; *stage != NULL; stage++) {
		if (*stage != &tok_stage_added_text && *stage != &tok_stage_added_normal &&
			*stage != &tok_stage_nfc && *stage != &tok_stage_bpe &&
			*stage != &tok_stage_wordpiece)
			return true;
	}
	return false;
}

/* Its only normalizer is form C. */
static bool
is_form_c(const struct tok_vocab *v)
{
	return v->norm.n == 1 && v->norm.step[0].kind == TOK_NORM_FORM_C;
}

/* Byte-level BPE, exact or by longest match. */
static const char *
bpe_refuses(const struct tok_vocab *v)
{
	if (v->norm.n > 0 && !is_form_c(v))
		return "a normalizer other than NFC";
	if (v->unigram.norm.on || v->metaspace.stage != TOK_METASPACE_OFF)
		return "SentencePiece's normalizer or blanks";
	if (v->pretok == TOK_PRETOK_SENTENCEPIECE || v->step == NULL)
		return "a pretokenizer without a table of steps";
	if (v->word_end != TOK_WORD_END_NONE)
		return "marks at the ends of words";
	if (v->digits_apart)
		return "digits apart within pretokens";
	if (v->n_repeats > 0)
		return "families of repeated tokens";
	for (uint32_t byte = 0; byte < TOK_BYTES; byte++) {
		if (v->ext[byte] >= v->info.n_ids)
			return "a byte that is not a token";
	}
	return has_other_stages(v) ? "a stage that devices do not have" : NULL;
}

/* WordPiece with BERT's normalizer and words. */
static const char *
wordpiece_refuses(const struct tok_vocab *v)
{
	if (v->norm.n > 0 || v->unigram.norm.on || v->metaspace.stage != TOK_METASPACE_OFF)
		return "a normalizer other than BERT's";
	if (v->pretok != TOK_PRETOK_BERT)
		return "words other than BERT's";
	return has_other_stages(v) ? "a stage that devices do not have" : NULL;
}

const char *
tokg_view_refuses(const struct tok_vocab *v, uint32_t flags)
{
	if (flags & TOK_STRICT_UTF8 || flags & TOK_TEMPLATE)
		return "strict UTF-8 or a template";
	for (enum tok_added_which which = 0; which <= TOK_ADDED_NORMAL_SET; which++) {
		if (tok_added_active(v, which, flags))
			return "added tokens in text";
	}
	switch (v->kind) {
	case TOK_KIND_BPE:
		return bpe_refuses(v);
	case TOK_KIND_WORDPIECE:
		return wordpiece_refuses(v);
	case TOK_KIND_UNIGRAM:
		break;
	}
	return "a model other than byte-level BPE and WordPiece";
}

struct tokg_view
tokg_view_here(const struct tok_vocab *v)
{
	struct tokg_view view = {.v = v};

	if (is_form_c(v)) {
		view.nfc_page = tok_nfc_page;
		view.nfc_props = tok_nfc_props;
	}
	return view;
}

/* Where the parts of an image are. */
struct layout {
	uint64_t vocab, nfc_page, nfc_props, table[TOK_N_TABLES], end;
	size_t nfc_bytes; /* of nfc_props */
};

static uint64_t
part(uint64_t *end, uint64_t bytes)
{
	const uint64_t at = (*end + 63) & ~63ull;

	*end = at + bytes;
	return at;
}

static struct layout
layout_of(const struct tok_vocab *v)
{
	struct layout l = {.end = sizeof(struct tokg_view)};
	uint32_t last = 0;

	for (uint32_t i = 0; i < NFC_PAGES; i++)
		last = tok_nfc_page[i] > last ? tok_nfc_page[i] : last;
	l.nfc_bytes = ((size_t)last + 1) * 256;
	l.vocab = part(&l.end, sizeof(*v));
	l.nfc_page = part(&l.end, NFC_PAGES);
	l.nfc_props = part(&l.end, l.nfc_bytes);
	l.end = tok_vocab_layout(v->table_bytes, l.end, l.table);
	return l;
}

size_t
tokg_view_bytes(const struct tok_vocab *v)
{
	return layout_of(v).end;
}

void
tokg_view_write(const struct tok_vocab *v, uint64_t at, void *image)
{
	const struct layout l = layout_of(v);
	uint8_t *const to = image;
	struct tok_vocab *const copy = (struct tok_vocab *)(void *)(to + l.vocab);
	struct tokg_view *const view = image;

	memset(image, 0, l.end);
	memcpy(copy, v, sizeof(*v));
	copy->kernels = NULL; /* functions of this process */
	memset(copy->stage, 0, sizeof(copy->stage));
	for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
		const size_t bytes = v->table_bytes[t];

		tok_vocab_table_set(copy, t, (void *)(bytes ? at + l.table[t] : 0), bytes);
		if (bytes > 0)
			memcpy(to + l.table[t], tok_vocab_table(v, t), bytes);
	}
	memcpy(to + l.nfc_page, tok_nfc_page, NFC_PAGES);
	memcpy(to + l.nfc_props, tok_nfc_props, l.nfc_bytes);
	view->v = (const struct tok_vocab *)(at + l.vocab);
	if (is_form_c(v)) {
		view->nfc_page = (const uint8_t *)(at + l.nfc_page);
		view->nfc_props = (const uint8_t *)(at + l.nfc_props);
	}
}
