/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tables of spm_norm.h, and validate the map of a file. Set-up only. */
#include <string.h>

#include "normalize/spm_norm.h"
#include "build/parts.h"
#include "unicode/grapheme.h"
#include "unicode/utf8.h"
#include "build/vocab_table.h"

/* ---- the map ---- */

/*
 * A walk over all keys of the map: up to TOK_CLUSTER_BYTES, as longer ones and continuations of a
 * key are never searched for. With `longest`: up to TOK_SPM_KEY_MAX.
 */
struct walk {
	const struct tok_spm_norm *norm;
	uint32_t n_units, n_text;
	uint32_t n_nodes;
	bool by_bytes;
	bool parts; /* added tokens may split the text, and a blank goes before each part */
	bool longest;
	uint8_t key[TOK_SPM_KEY_MAX];
	uint32_t ids_per_byte;
	uint32_t several; /* the same, by character of a key that has several */
};

/* Limit of nodes visited. Paths may join or loop; the map of nmt_nfkc has about 20,000 nodes. */
#define NODES_MAX (1u << 20)

/* The most ids of n bytes of text: one per character, or one per byte. */
static uint32_t
ids_of(const struct walk *w, const uint8_t *p, uint32_t n)
{
	uint32_t ids = 0;

	for (uint32_t i = 0; i < n; i++)
		ids += w->by_bytes || (p[i] & 0xc0) != 0x80;
	return w->parts ? ids + (ids + 1) / 2 + 1 : ids;
}

/*
 * Bytes of input text that the first n bytes of w->key stand for: U+FFFD may be one ill-formed
 * byte.
 */
static uint32_t
raw_bytes(const struct walk *w, uint32_t n)
{
	static const uint8_t replacement[] = TOK_UTF8_REPLACEMENT;
	uint32_t raw = n;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t same = 0;

		while (same < TOK_UTF8_REPLACEMENT_BYTES && i + same < n &&
			w->key[i + same] == replacement[same])
			same++;
		if (same > 1 && (same == TOK_UTF8_REPLACEMENT_BYTES || i + same == n))
			raw -= same - 1;
	}
	return raw;
}

/* Check the text of a key of n bytes. */
static bool
text_fits(struct walk *w, uint32_t at, uint32_t n)
{
	const uint8_t *text = w->norm->text + at;
	uint32_t len, ids;

	if (at > w->n_text)
		return false;
	len = (uint32_t)strnlen((const char *)text, w->n_text - at);
	if (w->longest && tok_utf8_scan(w->key, n).valid != n)
		return false;
	n = w->longest ? n : raw_bytes(w, n);
	ids = (ids_of(w, text, len) + n - 1) / n;
	w->ids_per_byte = ids > w->ids_per_byte ? ids : w->ids_per_byte;
	if (n > tok_utf8_length(w->key[0])) {
		ids = (ids_of(w, text, len) + 1) / 2;
		w->several = ids > w->several ? ids : w->several;
	}
	return len <= TOK_SPM_TEXT_MAX && tok_utf8_scan(text, len).valid == len;
}

/* Check that a search stays inside the map, and each key's text. */
static bool
keys_fit(struct walk *w)
{
	const uint32_t most = w->longest ? TOK_SPM_KEY_MAX : TOK_CLUSTER_BYTES;
	uint32_t at[TOK_SPM_KEY_MAX + 1]; /* by depth: offset of the node */
	uint32_t next[TOK_SPM_KEY_MAX + 1], depth = 0;

	at[0] = tok_spm_offset(w->norm->unit[0]);
	next[0] = 1;
	if ((at[0] | 0xff) >= w->n_units)
		return false;
	for (;;) {
		uint32_t unit, to, byte;

		if (next[depth] > 0xff || (depth == most && !w->longest)) {
			if (depth-- == 0)
				return true;
			continue;
		}
		byte = next[depth]++;
		unit = w->norm->unit[at[depth] ^ byte];
		if ((unit & (1u << 31 | 0xff)) != byte)
			continue;
		if (depth == most)
			return false;
		w->key[depth] = (uint8_t)byte;
		to = at[depth] ^ byte ^ tok_spm_offset(unit);
		if ((to | 0xff) >= w->n_units)
			return false;
		if (unit >> 8 & 1) {
			if (!text_fits(w, w->norm->unit[to] & ~(1u << 31), depth + 1))
				return false;
			if (!w->longest)
				continue; /* no search continues here */
		}
		if (++w->n_nodes > NODES_MAX)
			return false;
		at[++depth] = to;
		next[depth] = 1;
	}
}

static bool
build_map(struct tok_vocab *v, const struct tok_model_unigram *m, struct tok_error *err)
{
	struct tok_spm_norm *norm = &v->unigram.norm;
	const size_t n_text = m->charsmap_bytes - m->charsmap_trie;
	const size_t n = m->charsmap_trie / sizeof(uint32_t);

	if (!tok_vocab_table_make(v, TOK_TABLE_CHARSMAP, n) ||
		!tok_vocab_table_make(v, TOK_TABLE_CHARSMAP_TEXT, n_text + 1))
		return tok_fail(err, "out of memory for a map of %zu bytes", m->charsmap_bytes);
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = m->charsmap + i * sizeof(uint32_t);

		norm->unit[i] =
			p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
	}
	memcpy(norm->text, m->charsmap + m->charsmap_trie, n_text);
	return true;
}

/* ---- all of it ---- */

#define TOO_MANY_IDS "it makes more than 12 ids of a byte"

const char *
tok_spm_norm_check(const struct tok_vocab *v, uint32_t *ids_per_byte, uint32_t *several)
{
	/* An ill-formed byte becomes U+FFFD, which gives at most as many ids as it has bytes. */
	struct walk w = {.norm = &v->unigram.norm,
		.n_units = tok_vocab_table_n(v, TOK_TABLE_CHARSMAP),
		.n_text = tok_vocab_table_n(v, TOK_TABLE_CHARSMAP_TEXT),
		.by_bytes = v->unigram.byte_fallback || v->kind == TOK_KIND_BPE,
		.longest = v->unigram.norm.sentencepiece,
		.parts = v->unigram.prefix == TOK_PREFIX_EACH &&
			 (v->unigram.norm.parts || v->table_bytes[TOK_TABLE_ADDED_NORMAL] > 0),
		.ids_per_byte = TOK_UTF8_REPLACEMENT_BYTES};
	uint32_t text, ids;
	bool open;

	*ids_per_byte = w.ids_per_byte;
	*several = 0;
	if (w.n_units == 0)
		return NULL;
	if (w.n_text == 0 || w.norm->text[--w.n_text] != '\0' || !keys_fit(&w))
		return w.longest ? "it is damaged, or has too many keys, or one of more than 64 "
				   "bytes or of part of a character, or makes a text of more than "
				   "255 bytes"
				 : "it is damaged, or has too many keys, or makes a text of more "
				   "than 255 bytes";
	*several = w.several;
	if (w.longest) { /* ill-formed bytes are not looked up */
		*ids_per_byte = w.ids_per_byte;
		return w.ids_per_byte > TOK_IDS_PER_BYTE_MAX ? TOO_MANY_IDS : NULL;
	}
	text = tok_spm_find(
		w.norm, (const uint8_t *)TOK_UTF8_REPLACEMENT, TOK_UTF8_REPLACEMENT_BYTES, &open);
	if (text != TOK_SPM_NO_TEXT) {
		const char *of = (const char *)w.norm->text + text;

		ids = ids_of(&w, w.norm->text + text, (uint32_t)strlen(of));
		w.ids_per_byte = ids > w.ids_per_byte ? ids : w.ids_per_byte;
	}
	*ids_per_byte = w.ids_per_byte;
	return w.ids_per_byte > TOK_IDS_PER_BYTE_MAX ? TOO_MANY_IDS : NULL;
}

/* Does no key start with c, or with c and another ASCII character? */
static bool
stays_before_ascii(const struct tok_vocab *v, uint8_t c)
{
	const struct tok_spm_norm *norm = &v->unigram.norm;
	const struct tok_added *own = &v->added[TOK_ADDED_TEXT_SET];
	uint8_t two[2] = {c, 0};
	uint32_t len;
	bool open;

	if (own->trie.node != NULL &&
		tok_longest_child(&own->trie.node[TOK_LONGEST_GO_ON], c) != TOK_NO_TOKEN)
		return false;
	for (; norm->unit != NULL && two[1] < 0x80; two[1]++) {
		if (tok_spm_find_longest(norm, two, 2, &len, &open) != TOK_SPM_NO_TEXT || open)
			return false;
	}
	return true;
}

void
tok_spm_norm_sum(struct tok_vocab *v)
{
	struct tok_spm_norm *norm = &v->unigram.norm;
	bool open;

	norm->white = norm->strip_left || norm->strip_right || norm->squeeze;
	norm->on = norm->white || norm->unit != NULL || norm->sentencepiece;
	tok_spm_norm_check(v, &v->ids_per_byte, &norm->several);
	for (uint8_t c = 0; c < 0x80 && norm->sentencepiece; c++)
		norm->stays[c] = stays_before_ascii(v, c);
	for (uint8_t c = 0x20; c < 0x7f && norm->unit != NULL && !norm->sentencepiece; c++)
		norm->stays[c] = tok_spm_find(norm, &c, 1, &open) == TOK_SPM_NO_TEXT;
	norm->all_stay = norm->unit != NULL && !norm->sentencepiece &&
			 memchr(norm->stays + 0x20, false, 0x7f - 0x20) == NULL;
}

bool
tok_spm_norm_build(struct tok_vocab *v, const struct tok_model_unigram *m, struct tok_error *err)
{
	const struct tok_runs classes = {tok_grapheme_runs, tok_grapheme_n_runs, 6};
	struct tok_spm_norm *norm = &v->unigram.norm;
	const char *wrong;

	norm->strip_left = m->strip_left;
	norm->strip_right = m->strip_right;
	norm->squeeze = m->squeeze;
	norm->squeeze_to_mark = m->squeeze_to_mark;
	if (m->charsmap != NULL && !build_map(v, m, err))
		return false;
	if (m->charsmap != NULL && !m->sentencepiece && !tok_vocab_classes(v, classes, err))
		return false;
	wrong = tok_spm_norm_check(v, &v->ids_per_byte, &norm->several);
	if (wrong != NULL)
		return tok_fail(err, "the map of characters: %s", wrong);
	tok_unigram_sum(v);
	return true;
}

static_assert(TOK_SPM_TEXT_MAX == 255 && TOK_IDS_PER_BYTE_MAX == 12 && TOK_SPM_KEY_MAX == 64,
	"as said above");

bool
tok_spm_split_charsmap(struct tok_model_unigram *m, size_t n)
{
	const uint8_t *p = m->charsmap;

	if (n <= 4)
		return false;
	m->charsmap_trie =
		(p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24) & ~(size_t)3;
	m->charsmap_bytes = n - 4;
	memmove(m->charsmap, m->charsmap + 4, m->charsmap_bytes);
	return m->charsmap_trie > 0 && m->charsmap_trie <= m->charsmap_bytes;
}

bool
tok_spm_normalize(const struct tok_vocab *v, const uint8_t *p, size_t n, uint8_t *out, size_t room,
	size_t *len)
{
	struct tok_spm_piece piece = {p, p + n, true};
	struct tok_spm_state state;
	uint8_t some[TOK_SPM_OUT];
	size_t got;

	*len = 0;
	tok_spm_init(&state);
	while ((got = tok_spm_next(v, &state, &piece, some)) > 0) {
		if (got == TOK_SPM_FULL || got > room - *len)
			return false;
		memcpy(out + *len, some, got);
		*len += got;
	}
	return true;
}
