/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "build/model.h"
#include "vocabulary.h"

static const struct {
	const char *left, *right;
} merges[VOCABULARY_MERGES] = {{"h", "e"}, {"l", "o"}, {"l", "lo"}, {"he", "llo"}, {" ", "w"},
	{"o", "r"}, {" w", "or"}, {"l", "d"}, {" wor", "ld"}, {" ", "t"}, {" t", "he"}, {"i", "n"},
	{"in", "g"}, {" t", "o"}, {"k", "e"}, {" to", "ke"}, {" toke", "n"}, {"1", "2"},
	{"12", "3"}, {"\xc3", "\xa9"}};

static uint32_t
id_of(const struct tok_model *m, const char *s)
{
	for (uint32_t i = 0; i < m->n_tokens; i++)
		if (m->token[i].len == strlen(s) &&
			memcmp(m->bytes + m->token[i].off, s, m->token[i].len) == 0)
			return i;
	return TOK_NO_TOKEN;
}

static struct tok_vocab *
make(uint32_t n_merges, bool nfc, uint32_t n_specials)
{
	static struct tok_model_token token[256 + RTE_DIM(merges) + VOCABULARY_SPECIALS];
	static struct tok_model_merge merge[RTE_DIM(merges)];
	static uint8_t bytes[256 + 16 * (RTE_DIM(merges) + VOCABULARY_SPECIALS)];
	struct tok_model m = {.format = "test",
		.pretok = TOK_PRETOK_GPT2,
		.norm = {.n = nfc, .step = {{.kind = TOK_NORM_FORM_C}}},
		.token = token,
		.bytes = bytes,
		.merge = merge};
	struct tok_error err;
	struct tok_vocab *v;

	for (uint32_t i = 0; i < 256; i++) {
		bytes[i] = (uint8_t)i;
		token[i] = (struct tok_model_token){.off = i, .len = 1};
	}
	m.n_tokens = 256;
	m.n_bytes = 256;
	for (uint32_t i = 0; i < n_merges; i++) {
		int n = sprintf((char *)bytes + m.n_bytes, "%s%s", merges[i].left, merges[i].right);

		merge[i] = (struct tok_model_merge){.rank = i,
			.left = id_of(&m, merges[i].left),
			.right = id_of(&m, merges[i].right),
			.result = m.n_tokens};
		token[m.n_tokens++] =
			(struct tok_model_token){.off = (uint32_t)m.n_bytes, .len = (uint32_t)n};
		m.n_bytes += (size_t)n;
	}
	m.n_merges = n_merges;
	for (uint32_t i = 0; i < n_specials; i++) {
		int n = sprintf((char *)bytes + m.n_bytes, "<special %u>", i);

		token[m.n_tokens++] = (struct tok_model_token){
			.off = (uint32_t)m.n_bytes, .len = (uint32_t)n, .special = true};
		m.n_bytes += (size_t)n;
	}
	v = tok_vocab_build(&m, "test", "none", NULL, &err);
	if (v == NULL)
		fprintf(stderr, "vocabulary: %s\n", err.text);
	return v;
}

struct tok_vocab *
vocabulary_make(uint32_t n_merges)
{
	return make(n_merges, false, 0);
}

struct tok_vocab *
vocabulary_make_nfc(uint32_t n_merges)
{
	return make(n_merges, true, 0);
}

struct tok_vocab *
vocabulary_make_special(uint32_t n_merges)
{
	return make(n_merges, false, VOCABULARY_SPECIALS);
}
