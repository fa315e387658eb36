/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Validate a compiled vocabulary from an untrusted file: which tables exist, their sizes, and what
 * is common to all kinds. Takes time linear in the size of the tables. Set-up only.
 */
#include <stdlib.h>

#include "compiled.h"
#include "unicode/pages.h"
#include "build/pieces.h"
#include "build/vocab_table.h"

#define BIT(table) (1ull << TOK_TABLE_##table)
static_assert(TOK_N_TABLES <= 64, "a bit for each");

#define OF_ALL (BIT(SPAN) | BIT(BYTES))
#define OF_BPE                                                                                     \
	(BIT(PAIR) | BIT(PAIR_PILOT) | BIT(PAIR_FILTER) | BIT(BYTE_PAIR) | BIT(SPLIT) | BIT(EXT) | \
		BIT(LEN) | BIT(NODE) | BIT(CAT_PAGE) | BIT(CAT))
#define OF_UNMERGED (BIT(UNMERGED) | BIT(WORD) | BIT(LONG_WORD))
#define OF_TEXT_SET (BIT(ADDED_TEXT) | BIT(ADDED_TEXT_NODE) | BIT(ADDED_TEXT_POP))
#define OF_NORMAL_SET (BIT(ADDED_NORMAL) | BIT(ADDED_NORMAL_NODE) | BIT(ADDED_NORMAL_POP))
#define OF_LONGEST (BIT(LONGEST_NODE) | BIT(LONGEST_POP))
#define OF_WORDPIECE                                                                               \
	(OF_LONGEST | BIT(NORM_PAGE) | BIT(NORM_ELEMENT) | BIT(NORM_SEQ) | BIT(AT_START) |         \
		BIT(BEHIND) | BIT(TEXT) | BIT(CAT_PAGE) | BIT(CAT))
#define OF_TEXTS (BIT(AT_START) | BIT(BEHIND) | BIT(TEXT))
#define OF_UNIGRAM (BIT(NODE) | BIT(LEN) | OF_TEXTS)
#define OF_CHARSMAP (BIT(CHARSMAP) | BIT(CHARSMAP_TEXT))
#define OF_MAPS (BIT(MAP_PAGE) | BIT(MAP_ELEMENT) | BIT(MAP_TEXT))
#define OF_WORDS (BIT(WORD) | BIT(LONG_WORD))
#define OF_GRAPHEMES (BIT(CAT_PAGE) | BIT(CAT))

static uint32_t
n_of(const struct tok_vocab *v, enum tok_table which)
{
	return tok_vocab_table_n(v, which);
}

/* Are all of `tables` there, or none? Removes them from *there. */
static bool
take_option(uint64_t *there, uint64_t tables)
{
	const uint64_t found = *there & tables;

	*there &= ~tables;
	return found == 0 || found == tables;
}

/* Does the vocabulary have exactly the tables of its kind? */
static bool
tables_are_there(const struct tok_vocab *v)
{
	uint64_t there = 0;

	for (enum tok_table t = 0; t < TOK_N_TABLES; t++)
		there |= v->table_bytes[t] > 0 ? 1ull << t : 0;
	if (!take_option(&there, BIT(SPECIAL)) || !take_option(&there, OF_TEXT_SET) ||
		!take_option(&there, BIT(NORM_STEP)) || !take_option(&there, OF_MAPS) ||
		!take_option(&there, BIT(LITERAL)))
		return false;
	switch (v->kind) {
	case TOK_KIND_BPE:
		return take_option(&there, OF_NORMAL_SET) && take_option(&there, OF_LONGEST) &&
		       take_option(&there, OF_UNMERGED) && take_option(&there, BIT(REPEAT)) &&
		       (!v->unigram.norm.sentencepiece || take_option(&there, OF_CHARSMAP)) &&
		       there == (OF_ALL | OF_BPE |
					(v->pretok == TOK_PRETOK_SENTENCEPIECE
							? BIT(JOINS) | BIT(CUTS)
							: BIT(STEP)) |
					(v->unigram.norm.sentencepiece || v->word_end ? OF_TEXTS
										      : 0));
	case TOK_KIND_WORDPIECE:
		return take_option(&there, OF_NORMAL_SET) && take_option(&there, OF_WORDS) &&
		       there == (OF_ALL | OF_WORDPIECE);
	case TOK_KIND_UNIGRAM:
		if (v->unigram.norm.sentencepiece)
			return take_option(&there, BIT(EXT)) && take_option(&there, OF_CHARSMAP) &&
			       there == (OF_ALL | OF_UNIGRAM);
		return take_option(&there, OF_NORMAL_SET) && take_option(&there, BIT(EXT)) &&
		       take_option(&there, OF_WORDS) &&
		       take_option(&there, OF_CHARSMAP | OF_GRAPHEMES) &&
		       there == (OF_ALL | OF_UNIGRAM);
	}
	return false;
}

/* A hash table's size must be a power of two, and at least the builder's smallest. */
static bool
is_slots(uint32_t n)
{
	return n >= 64 && (n & (n - 1)) == 0;
}

static bool
sizes_fit_bpe(const struct tok_vocab *v)
{
	return (v->n_unmerged == 0 || (is_slots(n_of(v, TOK_TABLE_WORD)) &&
					      is_slots(n_of(v, TOK_TABLE_LONG_WORD)))) &&
	       is_slots(n_of(v, TOK_TABLE_PAIR)) &&
	       n_of(v, TOK_TABLE_PAIR_PILOT) == n_of(v, TOK_TABLE_PAIR) / TOK_PAIR_SHARE &&
	       n_of(v, TOK_TABLE_PAIR_FILTER) == n_of(v, TOK_TABLE_PAIR) / TOK_PAIR_FILTER_SHARE &&
	       n_of(v, TOK_TABLE_BYTE_PAIR) == TOK_BYTES * TOK_BYTES && v->n_ranks >= TOK_BYTES &&
	       v->n_ranks <= TOK_MAX_IDS && v->n_ranks <= n_of(v, TOK_TABLE_SPAN) &&
	       n_of(v, TOK_TABLE_LEN) == v->n_ranks && n_of(v, TOK_TABLE_SPLIT) == v->n_ranks &&
	       v->n_nodes > TOK_BYTES && v->n_repeats <= TOK_REPEATS_MAX &&
	       (v->pretok != TOK_PRETOK_SENTENCEPIECE ||
		       (n_of(v, TOK_TABLE_JOINS) > TOK_JOINS_ASCII / 64 &&
			       is_slots(n_of(v, TOK_TABLE_JOINS) - TOK_JOINS_ASCII / 64) &&
			       n_of(v, TOK_TABLE_CUTS) == 1)) &&
	       (!(v->unigram.norm.sentencepiece || v->word_end) ||
		       (n_of(v, TOK_TABLE_AT_START) == v->info.n_ids &&
			       n_of(v, TOK_TABLE_BEHIND) == v->info.n_ids)) &&
	       n_of(v, TOK_TABLE_CAT_PAGE) == TOK_PAGES && n_of(v, TOK_TABLE_CAT) % TOK_PAGE == 0;
}

/* The words of WordPiece and Unigram, which need not be there. */
static bool
sizes_fit_words(const struct tok_vocab *v)
{
	return v->word == NULL ||
	       (is_slots(n_of(v, TOK_TABLE_WORD)) && is_slots(n_of(v, TOK_TABLE_LONG_WORD)));
}

static bool
sizes_fit_wordpiece(const struct tok_vocab *v)
{
	return n_of(v, TOK_TABLE_NORM_PAGE) == TOK_PAGES &&
	       n_of(v, TOK_TABLE_NORM_ELEMENT) % TOK_PAGE == 0 &&
	       n_of(v, TOK_TABLE_CAT_PAGE) == TOK_PAGES &&
	       n_of(v, TOK_TABLE_CAT) == n_of(v, TOK_TABLE_NORM_ELEMENT) &&
	       n_of(v, TOK_TABLE_AT_START) == v->info.n_ids &&
	       n_of(v, TOK_TABLE_BEHIND) == v->info.n_ids;
}

static bool
sizes_fit_unigram(const struct tok_vocab *v)
{
	return n_of(v, TOK_TABLE_LEN) == v->info.n_ids &&
	       n_of(v, TOK_TABLE_AT_START) == v->info.n_ids &&
	       n_of(v, TOK_TABLE_BEHIND) == v->info.n_ids &&
	       n_of(v, TOK_TABLE_EXT) == (v->unigram.byte_fallback ? TOK_BYTES : 0) &&
	       (v->table_bytes[TOK_TABLE_CAT] == 0 ||
		       (n_of(v, TOK_TABLE_CAT_PAGE) == TOK_PAGES &&
			       n_of(v, TOK_TABLE_CAT) % TOK_PAGE == 0));
}

static bool
sizes_fit_kind(const struct tok_vocab *v)
{
	switch (v->kind) {
	case TOK_KIND_BPE:
		break;
	case TOK_KIND_WORDPIECE:
		return sizes_fit_words(v) && sizes_fit_wordpiece(v);
	case TOK_KIND_UNIGRAM:
		return sizes_fit_words(v) && sizes_fit_unigram(v);
	}
	return sizes_fit_bpe(v);
}

static bool
sizes_fit(const struct tok_vocab *v)
{
	const uint32_t spans = n_of(v, TOK_TABLE_SPAN);

	/* Only pieces have parts of characters after the ids. */
	return v->info.n_ids > 0 && v->info.n_ids <= spans && spans <= TOK_MAX_IDS &&
	       (v->info.n_ids == spans || v->pretok == TOK_PRETOK_SENTENCEPIECE) &&
	       n_of(v, TOK_TABLE_BYTES) >= 8 && sizes_fit_kind(v) &&
	       (v->table_bytes[TOK_TABLE_LONGEST_NODE] == 0 ||
		       n_of(v, TOK_TABLE_LONGEST_NODE) > TOK_LONGEST_GO_ON);
}

/* The properties of a .model, which exclude others. */
static bool
settings_fit(const struct tok_unigram *u)
{
	return u->blanks && !u->words && !u->split && u->prefix == TOK_PREFIX_NONE &&
	       u->norm.strip_left == u->norm.strip_right && u->norm.strip_left == u->norm.squeeze &&
	       !u->norm.squeeze_to_mark && u->norm.dummy <= TOK_DUMMY_SUFFIX;
}

static bool
numbers_fit(const struct tok_vocab *v)
{
	const bool metaspace = v->metaspace.stage != TOK_METASPACE_OFF;

	if (v->word_end > TOK_WORD_END_SPECIALS)
		return false;
	if (v->word_end && (v->kind != TOK_KIND_BPE || v->pretok != TOK_PRETOK_REGEX ||
				   v->longest.node != NULL))
		return false;
	if (v->digits_apart && v->kind != TOK_KIND_BPE)
		return false;
	if (v->info.checksum == 0 || v->info.n_special != n_of(v, TOK_TABLE_SPECIAL) ||
		v->info.max_token_bytes > TOK_MAX_TOKEN_BYTES + 1)
		return false;
	if (v->kind == TOK_KIND_WORDPIECE)
		return (v->pretok == TOK_PRETOK_BERT || v->pretok == TOK_PRETOK_WHITE ||
			       v->pretok == TOK_PRETOK_WORDS) &&
		       !metaspace && !v->unigram.norm.sentencepiece && v->wordpiece.max_chars > 0 &&
		       v->wordpiece.max_chars <= TOK_WORD_MAX && v->wordpiece.unk < v->info.n_ids;
	if (v->kind == TOK_KIND_UNIGRAM)
		return v->pretok == TOK_PRETOK_NONE && !metaspace &&
		       v->unigram.prefix <= TOK_PREFIX_EACH && v->unigram.unk < v->info.n_ids &&
		       (!v->unigram.norm.sentencepiece || settings_fit(&v->unigram));
	if (v->pretok == TOK_PRETOK_SENTENCEPIECE)
		return metaspace && v->metaspace.stage <= TOK_METASPACE_PRETOKENIZER &&
		       v->metaspace.prefix <= TOK_PREFIX_TEXT &&
		       (!v->unigram.norm.sentencepiece ||
			       (v->metaspace.stage == TOK_METASPACE_NORMALIZER &&
				       v->metaspace.prefix == TOK_PREFIX_NONE &&
				       v->unigram.unk < v->info.n_ids &&
				       settings_fit(&v->unigram)));
	return ((v->pretok >= TOK_PRETOK_GPT2 && v->pretok <= TOK_PRETOK_LAST) ||
		       v->pretok == TOK_PRETOK_REGEX) &&
	       (!metaspace || (v->metaspace.stage == TOK_METASPACE_PREFIX &&
				      v->metaspace.prefix == TOK_PREFIX_EACH)) &&
	       !v->unigram.norm.sentencepiece;
}

/* Special ids, and those of the template, must exist. */
static bool
specials_fit(const struct tok_vocab *v)
{
	const struct tok_template *t = &v->shape.around;

	if (t->n_before > TOK_TEMPLATE_MAX || t->n_after > TOK_TEMPLATE_MAX)
		return false;
	for (uint32_t i = 0; i < v->info.n_special; i++) {
		if (v->special[i] >= v->info.n_ids)
			return false;
	}
	for (uint32_t i = 0; i < TOK_TEMPLATE_MAX; i++) {
		if ((i < t->n_before && t->before[i] >= v->info.n_ids) ||
			(i < t->n_after && t->after[i] >= v->info.n_ids))
			return false;
	}
	return true;
}

/* The text of each id lies in `bytes`, and eight bytes after it may be read. */
static bool
spans_fit(const struct tok_vocab *v)
{
	const uint32_t room = n_of(v, TOK_TABLE_BYTES) - 8, n = n_of(v, TOK_TABLE_SPAN);
	bool ok = true;

	for (uint32_t id = 0; id < n; id++) {
		const struct tok_span s = v->span[id];

		ok &= (s.len <= TOK_MAX_TOKEN_BYTES) & (s.off <= room) &
		      ((uint64_t)s.off + s.len <= room);
	}
	return ok;
}

bool
tok_compiled_check_pages(const struct tok_vocab *v)
{
	for (uint32_t i = 0; v->cat_page != NULL && i < TOK_PAGES; i++) {
		if (v->cat_page[i] >= n_of(v, TOK_TABLE_CAT) / TOK_PAGE)
			return false;
	}
	return true;
}

const char *
tok_compiled_check(struct tok_vocab *v)
{
	const char *wrong = NULL;

	if (!tables_are_there(v))
		wrong = "which there are";
	else if (!sizes_fit(v))
		wrong = "their sizes";
	else if (!numbers_fit(v))
		wrong = "their numbers";
	else if (!specials_fit(v))
		wrong = "special";
	else if (!spans_fit(v))
		wrong = "span";
	if (wrong == NULL)
		wrong = tok_compiled_check_norm(v);
	if (wrong == NULL)
		wrong = tok_compiled_check_added(v);
	if (wrong == NULL && v->kind == TOK_KIND_BPE)
		wrong = tok_compiled_check_bpe(v);
	if (wrong == NULL && v->word_end && !tok_compiled_check_texts(v))
		wrong = "text";
	if (wrong == NULL && v->table_bytes[TOK_TABLE_LONGEST_NODE] > 0)
		wrong = tok_compiled_check_longest(v);
	if (wrong == NULL && v->kind == TOK_KIND_WORDPIECE)
		wrong = tok_compiled_check_wordpiece(v);
	if (wrong == NULL && v->kind == TOK_KIND_UNIGRAM)
		wrong = tok_compiled_check_unigram(v);
	if (wrong == NULL)
		wrong = tok_compiled_check_words(v);
	if (wrong == NULL && v->kind == TOK_KIND_BPE && v->unigram.norm.sentencepiece)
		wrong = tok_compiled_check_normalizer(v);
	return wrong;
}
