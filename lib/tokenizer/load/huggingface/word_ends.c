/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "parts.h"
#include "pretokenize/names.h"

#define BYTES 256u
#define MARK_BYTES (sizeof(TOK_JSON_WORD_END) - 1)

bool
tok_json_has_word_ends(const struct tok_json *root)
{
	const char *suffix = tok_json_string_value(
		tok_json_get(tok_json_get(root, "model"), "end_of_word_suffix"));

	return suffix != NULL && suffix[0] != '\0';
}

/* CLIP's; since transformers 5 with these before them. */
#define SPECIALS "<\\|startoftext\\|>|<\\|endoftext\\|>|"
#define WORDS "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"

bool
tok_json_word_ends_pretok(
	const char *file, const struct tok_json *root, struct tok_model *m, struct tok_error *err)
{
	const size_t n = sizeof(SPECIALS) - 1;
	char *regex;

	if (!tok_json_pretok(file, root, m, err))
		return false;
	regex = m->pretok == TOK_PRETOK_REGEX && !m->digits_apart ? m->regex[0] : "";
	m->word_end = TOK_WORD_END_MARK;
	/* A stage finds them (normalize/steps.h); GPT-2's expression splits them as ever. */
	if (strncmp(regex, SPECIALS, n) == 0 && m->regex[1] != NULL &&
		strcmp(m->regex[1], TOK_REGEX_GPT2) == 0) {
		m->word_end = TOK_WORD_END_SPECIALS;
		memmove(regex, regex + n, strlen(regex + n) + 1);
	}
	if (strcmp(regex, WORDS) == 0 && m->behavior[0] == TOK_SPLIT_REMOVED_GAPS) {
		m->behavior[0] = TOK_SPLIT_ISOLATED; /* gaps never reach it */
		return true;
	}
	return tok_fail(err,
		"%s: pre_tokenizer: with end_of_word_suffix this is not implemented (implemented: a "
		"Split by the Regex \"" WORDS "\", also with \"" SPECIALS "\" before it, Removed "
		"and inverted, then ByteLevel)",
		file);
}

/* The id of a text of up to two bytes, or TOK_NO_TOKEN. */
static void
find_bytes(const struct tok_model *m, uint32_t plain[BYTES], uint32_t marked[BYTES])
{
	for (uint32_t byte = 0; byte < BYTES; byte++)
		plain[byte] = marked[byte] = TOK_NO_TOKEN;
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];
		const uint8_t *p = m->bytes + t->off;

		if (t->special || t->outside)
			continue;
		if (t->len == 1)
			plain[p[0]] = id;
		if (t->len == 2 && p[1] == ' ')
			marked[p[0]] = id;
	}
}

bool
tok_json_word_ends(const char *file, struct tok_model *m, struct tok_error *err)
{
	uint32_t plain[BYTES], marked[BYTES];

	for (uint32_t id = 0; id < m->n_tokens; id++) {
		struct tok_model_token *t = &m->token[id];
		uint8_t *p = m->bytes + t->off;

		if (t->special || t->len <= MARK_BYTES ||
			memcmp(p + t->len - MARK_BYTES, TOK_JSON_WORD_END, MARK_BYTES) != 0)
			continue;
		t->len -= (uint32_t)MARK_BYTES - 1;
		p[t->len - 1] = ' ';
	}
	find_bytes(m, plain, marked);
	memmove(m->merge + BYTES, m->merge, m->n_merges * sizeof(*m->merge));
	m->n_merges += BYTES;
	for (uint32_t byte = 0; byte < BYTES; byte++) {
		if (plain[byte] == TOK_NO_TOKEN || marked[byte] == TOK_NO_TOKEN)
			return tok_fail(err,
				"%s: no token for the byte 0x%02x %s: a byte-level vocabulary with "
				"end_of_word_suffix needs all 256, with and without it",
				file, byte,
				plain[byte] == TOK_NO_TOKEN ? "inside a word" : "that ends a word");
		m->merge[byte] = (struct tok_model_merge){plain[byte], plain[' '], marked[byte], 0};
	}
	for (uint32_t i = 0; i < m->n_merges; i++)
		m->merge[i].rank = i;
	return true;
}
