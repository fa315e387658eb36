/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <string.h>

#include <mix.h>
#include "test.h"
#include "build/model_make.h"
#include "small_vocab.h"

uint32_t
small_random(uint64_t *state, uint32_t below)
{
	return (uint32_t)(dice_throw(state) % below);
}

static bool
spelled(const struct small_vocab *sv, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < sv->n; i++) {
		if (sv->len[i] == len && memcmp(sv->bytes[i], p, len) == 0)
			return true;
	}
	return false;
}

static void
add_merge(struct small_vocab *sv, uint32_t left, uint32_t right)
{
	uint32_t len = sv->len[left] + sv->len[right];
	uint8_t bytes[2 * SMALL_BYTES_MAX];

	memcpy(bytes, sv->bytes[left], sv->len[left]);
	memcpy(bytes + sv->len[left], sv->bytes[right], sv->len[right]);
	if (len > SMALL_BYTES_MAX || spelled(sv, bytes, len))
		return;
	sv->len[sv->n] = len;
	memcpy(sv->bytes[sv->n], bytes, len);
	sv->left[sv->n] = left;
	sv->right[sv->n] = right;
	sv->n++;
}

static const struct {
	const char *text;
	uint32_t what;
} added_tokens[] = {
	{"<a>", 0},
	{"<a", TOK_ADDED_SPECIAL},
	{"<s>", TOK_ADDED_SPECIAL | TOK_ADDED_RSTRIP},
	{"bb", TOK_ADDED_SINGLE_WORD},
	{"cab", TOK_ADDED_LSTRIP | TOK_ADDED_RSTRIP},
	{"\n\n", TOK_ADDED_LSTRIP | TOK_ADDED_SPECIAL},
	{" a", TOK_ADDED_NORMALIZED},
	{"e\xcc\x81", TOK_ADDED_NORMALIZED | TOK_ADDED_LSTRIP},
	{"LO", TOK_ADDED_NORMALIZED | TOK_ADDED_SINGLE_WORD | TOK_ADDED_SPECIAL},
	{"  ", TOK_ADDED_NORMALIZED},
};
#define N_ADDED (sizeof(added_tokens) / sizeof(added_tokens[0]))

void
small_added(struct tok_model *m)
{
	m->added = calloc(N_ADDED, sizeof(*m->added));
	m->added_bytes = malloc(N_ADDED * SMALL_BYTES_MAX);
	m->token = realloc(m->token, (m->n_tokens + N_ADDED) * sizeof(*m->token));
	m->bytes = realloc(m->bytes, m->n_bytes + N_ADDED * SMALL_BYTES_MAX);
	assert_true(
		m->added != NULL && m->added_bytes != NULL && m->token != NULL && m->bytes != NULL);
	for (uint32_t i = 0; i < N_ADDED; i++) {
		const uint32_t len = (uint32_t)strlen(added_tokens[i].text);

		m->added[i] = (struct tok_model_added){
			m->n_tokens, added_tokens[i].what, i * SMALL_BYTES_MAX, len};
		memcpy(m->added_bytes + i * SMALL_BYTES_MAX, added_tokens[i].text, len);
		m->token[m->n_tokens++] = (struct tok_model_token){
			.off = (uint32_t)m->n_bytes, .len = len, .special = true};
		memcpy(m->bytes + m->n_bytes, added_tokens[i].text, len);
		m->n_bytes += len;
	}
	m->n_added = N_ADDED;
	m->shape.around = (struct tok_template){.n_before = 1,
		.n_after = 2,
		.before = {m->n_tokens - 1},
		.after = {1, m->n_tokens - 2}};
}

void
small_vocab_make(struct small_vocab *sv, uint64_t *seed, const char *alphabet, uint32_t n_merges)
{
	small_vocab_of(sv, seed, alphabet, n_merges, TOK_PRETOK_GPT2, 0);
}

void
small_vocab_of(struct small_vocab *sv, uint64_t *seed, const char *alphabet, uint32_t n_merges,
	enum tok_pretok pretok, enum small_flags flags)
{
	uint32_t letters = (uint32_t)strlen(alphabet);
	struct tok_model m = {.format = "test",
		.pretok = pretok,
		.norm = {.n = (flags & SMALL_NFC) != 0, .step = {{.kind = TOK_NORM_FORM_C}}},
		.ignore_merges = flags & SMALL_WHOLE,
		.greedy = flags & SMALL_GREEDY};
	struct tok_error err;

	memset(sv, 0, sizeof(*sv));
	for (sv->n = 0; sv->n < 256; sv->n++) {
		sv->len[sv->n] = 1;
		sv->bytes[sv->n][0] = (uint8_t)sv->n;
	}
	for (uint32_t i = 0; i < n_merges; i++) {
		/* Parts: a letter or a token made before. */
		uint32_t made = sv->n - 256, part[2];

		for (int k = 0; k < 2; k++) {
			uint32_t r = small_random(seed, letters + made);

			part[k] = r < letters ? (uint8_t)alphabet[r] : 256 + r - letters;
		}
		add_merge(sv, part[0], part[1]);
	}

	m.n_tokens = sv->n;
	m.token = calloc(sv->n, sizeof(*m.token));
	m.bytes = malloc((size_t)sv->n * SMALL_BYTES_MAX);
	m.merge = calloc(sv->n, sizeof(*m.merge));
	assert_non_null(m.token);
	assert_non_null(m.bytes);
	assert_non_null(m.merge);
	for (uint32_t i = 0; i < sv->n; i++) {
		m.token[i].off = (uint32_t)m.n_bytes;
		m.token[i].len = sv->len[i];
		memcpy(m.bytes + m.n_bytes, sv->bytes[i], sv->len[i]);
		m.n_bytes += sv->len[i];
		if (i >= 256)
			tok_model_put_merge(&m, sv->left[i], sv->right[i], i);
	}
	if (flags & SMALL_ADDED)
		small_added(&m);
	sv->v = tok_vocab_build(&m, "small", "none", NULL, &err);
	if (sv->v == NULL)
		fail_msg("%s", err.text);
	free(m.token);
	free(m.bytes);
	free(m.merge);
	free(m.added);
	free(m.added_bytes);
}

void
small_vocab_free(struct small_vocab *sv)
{
	tok_vocab_free(sv->v);
}

struct tok_vocab *
small_wordpiece(const char *const *token, uint32_t n, const struct tok_model_bert *options)
{
	struct tok_model m = {.format = "test",
		.kind = TOK_KIND_WORDPIECE,
		.pretok = TOK_PRETOK_BERT,
		.n_tokens = n,
		.bert = *options};
	struct tok_vocab *v;
	struct tok_error err;

	m.token = calloc(n, sizeof(*m.token));
	m.bytes = malloc((size_t)n * SMALL_BYTES_MAX);
	assert_non_null(m.token);
	assert_non_null(m.bytes);
	for (uint32_t i = 0; i < n; i++) {
		m.token[i].off = (uint32_t)m.n_bytes;
		m.token[i].len = (uint32_t)strlen(token[i]);
		assert_true(m.token[i].len <= SMALL_BYTES_MAX);
		memcpy(m.bytes + m.n_bytes, token[i], m.token[i].len);
		m.n_bytes += m.token[i].len;
	}
	v = tok_vocab_build(&m, "small", "none", NULL, &err);
	if (v == NULL)
		fail_msg("%s", err.text);
	free(m.token);
	free(m.bytes);
	return v;
}

/* One in five is looked for by the normalizer. */
static void
add_pieces(struct tok_model *m)
{
	m->added = calloc(m->n_tokens, sizeof(*m->added));
	m->added_bytes = malloc(m->n_bytes + 1);
	assert_true(m->added != NULL && m->added_bytes != NULL);
	memcpy(m->added_bytes, m->bytes, m->n_bytes);
	for (uint32_t i = 3; i < m->n_tokens; i += 5)
		m->added[m->n_added++] = (struct tok_model_added){
			.id = i, .off = m->token[i].off, .len = m->token[i].len};
}

struct tok_vocab *
small_unigram(const char *const *piece, const double *score, uint32_t n,
	const struct tok_model_unigram *options, bool added)
{
	static uint8_t map[SMALL_MAP_BYTES];
	struct tok_model m = {
		.format = "test", .kind = TOK_KIND_UNIGRAM, .n_tokens = n, .unigram = *options};
	struct tok_vocab *v;
	struct tok_error err;

	m.unigram.n_pieces = n;
	m.unigram.score = calloc(n + 16, sizeof(*score));
	m.token = calloc(n, sizeof(*m.token));
	m.bytes = malloc((size_t)n * TOK_MAX_TOKEN_BYTES);
	assert_true(m.unigram.score != NULL && m.token != NULL && m.bytes != NULL);
	memcpy(m.unigram.score, score, n * sizeof(*score));
	for (uint32_t i = 0; i < n; i++) {
		m.token[i].off = (uint32_t)m.n_bytes;
		m.token[i].len = (uint32_t)strlen(piece[i]);
		memcpy(m.bytes + m.n_bytes, piece[i], m.token[i].len);
		m.n_bytes += m.token[i].len;
	}
	m.unigram.unknown = -20;
	m.token[0].outside = options->sentencepiece;
	if (added && options->sentencepiece) {
		add_pieces(&m);
	} else if (added) {
		small_added(&m);
		for (uint32_t i = n; i < m.n_tokens; i++)
			m.token[i].outside = true;
	}
	if (options->charsmap_bytes > 0) {
		m.unigram.charsmap = map;
		m.unigram.charsmap_bytes =
			small_map(map, &m.unigram.charsmap_trie, options->sentencepiece);
	}
	v = tok_vocab_build(&m, "small", "none", NULL, &err);
	if (v == NULL)
		fail_msg("%s", err.text);
	m.unigram.charsmap = NULL;
	tok_model_free(&m);
	return v;
}

static void
put_unit(uint8_t *bytes, uint32_t at, uint32_t unit)
{
	for (uint32_t i = 0; i < 4; i++)
		bytes[4 * at + i] = (uint8_t)(unit >> 8 * i);
}

/* Below the node with its children at `base`, by a byte: a node, or a key's end. */
static void
put_child(uint8_t *bytes, uint32_t base, uint8_t byte, bool leaf, uint32_t to)
{
	put_unit(bytes, base + byte, byte | (uint32_t)leaf << 8 | ((base + byte) ^ to) << 10);
}

size_t
small_map(uint8_t *bytes, size_t *trie, bool whole)
{
	/* Keys of one byte, and "e" with U+0301 behind it, of three. */
	static const struct {
		uint8_t key;
		const char *text;
	} keys[] = {{'A', "a"}, {'B', "bb"}, {'\n', " "}, {'\t', ""}, {0xc2, "  "}, {0xc3, "e"},
		{0xe3, "\xe2\x96\x81"}, {0xf0, "abcab"}, {'\r', "\xc2\x85"}, {0, "\xc3\xa9"}};
	static const char of_e[] = "b \xe2\x96\x81";
	enum { ROOT = 256, AFTER_E = 512, AFTER_CC = 768, LEAVES = 1024, UNITS = 1280 };
	uint32_t text = 0;

	memset(bytes, 0, SMALL_MAP_BYTES);
	*trie = UNITS * sizeof(uint32_t);
	put_unit(bytes, 0, ROOT << 10);
	put_child(bytes, ROOT, 'e', whole, AFTER_E);
	put_child(bytes, AFTER_E, 0xcc, false, AFTER_CC);
	for (uint32_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (whole && keys[i].key >= 0x80)
			continue;
		put_child(bytes, keys[i].key ? ROOT : AFTER_CC, keys[i].key ? keys[i].key : 0x81,
			true, LEAVES + i);
		put_unit(bytes, LEAVES + i, 1u << 31 | text);
		memcpy(bytes + *trie + text, keys[i].text, strlen(keys[i].text));
		text += (uint32_t)strlen(keys[i].text) + 1;
	}
	if (whole) {
		put_unit(bytes, AFTER_E, 1u << 31 | text);
		memcpy(bytes + *trie + text, of_e, sizeof(of_e));
		text += (uint32_t)sizeof(of_e);
	}
	return *trie + text;
}

uint32_t
small_encode(const struct small_vocab *sv, const uint8_t *p, uint32_t n, uint32_t *out)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = p[i];
	for (uint32_t rank = 256; rank < sv->n; rank++) {
		/* All merges of this rank, leftmost first, before any of the next: a merge makes
		 * no pair of lesser rank than its own, as its result is newer than that. */
		uint32_t to = 0;

		for (uint32_t from = 0; from < n; from++) {
			if (from + 1 < n && out[from] == sv->left[rank] &&
				out[from + 1] == sv->right[rank]) {
				out[to++] = rank;
				from++;
			} else {
				out[to++] = out[from];
			}
		}
		n = to;
	}
	return n;
}
