/* SPDX-License-Identifier: BSD-3-Clause */
/* Build the tries of wordpiece.h, and the texts that ids decode to. Set-up only. */
#include <stdlib.h>

#include "longest_build.h"
#include "parts.h"
#include "vocab_table.h"

static bool
goes_on(const struct tok_model *m, const uint8_t *p, uint32_t len)
{
	return !m->bert.whole && len >= 2 && p[0] == '#' && p[1] == '#';
}

/*
 * A token "##x" matches x inside a word, and "##x" where a word begins. BERT's pretokenizer makes
 * each "#" a word: there no word begins so. Up to two pieces a token.
 */
static uint32_t
list_pieces(const struct tok_model *m, struct tok_trie_word *piece)
{
	uint32_t n = 0;

	for (uint32_t id = 0; id < m->n_tokens; id++) {
		const struct tok_model_token *t = &m->token[id];
		const uint8_t *p = m->bytes + t->off;
		const bool inside = goes_on(m, p, t->len);

		if (t->len == 0 || t->outside)
			continue;
		if (!inside || m->pretok != TOK_PRETOK_BERT)
			piece[n++] = (struct tok_trie_word){p, t->len, id, TOK_LONGEST_BEGIN, 0};
		if (inside && t->len > 2)
			piece[n++] =
				(struct tok_trie_word){p + 2, t->len - 2, id, TOK_LONGEST_GO_ON, 0};
	}
	return n;
}

/* ---- decoding ---- */

/* Replace each `from` in text[0 .. *n) by `to`, as str::replace does. */
static void
replace_all(uint8_t *text, uint32_t *n, const char *from, const char *to)
{
	const uint32_t from_len = (uint32_t)strlen(from), to_len = (uint32_t)strlen(to);
	uint32_t at = 0, out = 0;

	while (at < *n) {
		if (*n - at >= from_len && memcmp(text + at, from, from_len) == 0) {
			memcpy(text + out, to, to_len); /* `to` is never longer than `from` */
			out += to_len;
			at += from_len;
		} else {
			text[out++] = text[at++];
		}
	}
	*n = out;
}

/* The cleanup of decoders/wordpiece.rs: these replacements in this order, in each token alone. */
static void
clean_up(uint8_t *text, uint32_t *n)
{
	static const char *const pair[][2] = {{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","},
		{" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"},
		{" 've", "'ve"}, {" 're", "'re"}};
	bool found = false; /* the first two characters of one of them: in few tokens */

	for (uint32_t i = 0; i + 1 < *n; i++)
		found |= text[i] == ' ' && strchr(".?!,'nd", text[i + 1]) != NULL;
	for (size_t i = 0; found && i < sizeof(pair) / sizeof(pair[0]); i++)
		replace_all(text, n, pair[i][0], pair[i][1]);
}

/*
 * Two texts per id. First in the output, a token decodes to its text; after others, "##" is
 * dropped, or a blank is put before it.
 */
static bool
build_texts(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	const uint32_t n = m->n_tokens;
	struct tok_wordpiece *w = &v->wordpiece;
	uint32_t at = 0;

	if (!tok_vocab_table_make(v, TOK_TABLE_AT_START, n) ||
		!tok_vocab_table_make(v, TOK_TABLE_BEHIND, n) ||
		!tok_vocab_table_make(v, TOK_TABLE_TEXT, 2 * m->n_bytes + n))
		return tok_fail(err, "out of memory for %u texts", n);
	for (uint32_t id = 0; id < n; id++) {
		const uint8_t *bytes = m->bytes + m->token[id].off;
		uint32_t len = m->token[id].len, skip = goes_on(m, bytes, len) ? 2 : 0;

		if (len == 0)
			continue;
		w->at_start[id].off = at;
		memcpy(w->text + at, bytes, len);
		w->at_start[id].len = len;
		if (m->bert.cleanup)
			clean_up(w->text + at, &w->at_start[id].len);
		at += w->at_start[id].len;
		w->behind[id].off = at;
		w->text[at] = ' ';
		memcpy(w->text + at + (skip == 0), bytes + skip, len - skip);
		w->behind[id].len = len - skip + (skip == 0);
		if (m->bert.cleanup)
			clean_up(w->text + at, &w->behind[id].len);
		at += w->behind[id].len;
	}
	return true;
}

static bool
build_tries(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	struct tok_trie_word *piece = malloc((2 * (size_t)m->n_tokens + 1) * sizeof(*piece));
	bool ok = piece != NULL || tok_fail(err, "out of memory for %u tokens", m->n_tokens);

	ok = ok && tok_longest_build(v, &v->longest, TOK_TABLE_LONGEST_NODE, TOK_TABLE_LONGEST_POP,
			   piece, list_pieces(m, piece), err);
	free(piece);
	return ok;
}

bool
tok_wordpiece_build(struct tok_vocab *v, const struct tok_model *m, struct tok_error *err)
{
	v->wordpiece.unk = m->bert.unk;
	v->wordpiece.max_chars = m->bert.max_chars;
	v->wordpiece.whole = m->bert.whole;
	return build_tries(v, m, err) && build_texts(v, m, err) &&
	       tok_bert_norm_build(v, &m->bert, err);
}
