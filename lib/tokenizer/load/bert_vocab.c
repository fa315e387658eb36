/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BERT's vocab.txt: one token per line; the line's number, from 0, is the id. As in the reference
 * (models/wordpiece/mod.rs, read_file), white space at the end of a line is ignored, and of equal
 * lines the last one counts. Everything else is not in the file, and taken as in all BERT models:
 * the normalizer (only lowercase differs), and [CLS] and [SEP] around a text.
 */
#include <stdlib.h>
#include <string.h>

#include "unicode/bert_tables.h"
#include "build/model_make.h"
#include "unicode/utf8.h"

#define MAX_CHARS 100

static bool
is_blank(uint32_t cp)
{
	uint32_t low = 0, high = tok_bert_classes_n, cls; /* the run is in [low, high) */

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (tok_bert_classes[middle] >> TOK_BERT_CLASS_BITS <= cp)
			low = middle;
		else
			high = middle;
	}
	cls = tok_bert_classes[low] & 7;
	return cls == TOK_BERT_BLANK || cls == TOK_BERT_CONTROL_BLANK;
}

/* Length of p[0 .. n), valid UTF-8, without the white space at its end. */
static size_t
trimmed(const uint8_t *p, size_t n)
{
	while (n > 0) {
		unsigned int len = 1;

		while (tok_utf8_length(p[n - len]) == 0)
			len++;
		if (!is_blank(tok_utf8_decode(p + n - len, len)))
			break;
		n -= len;
	}
	return n;
}

/* Ignore tokens such as [UNK]: uncased files have them too. */
static bool
has_upper_case(const uint8_t *p, size_t len)
{
	if (len > 1 && p[0] == '[' && p[len - 1] == ']')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (p[i] >= 'A' && p[i] <= 'Z')
			return true;
	}
	return false;
}

static bool
check_line(const char *file, uint32_t number, const uint8_t *p, size_t len, bool may_guess,
	struct tok_error *err)
{
	if (len > TOK_MAX_TOKEN_BYTES)
		return tok_fail(err, "%s line %u: a token of %zu bytes, the limit is %u", file,
			number, len, TOK_MAX_TOKEN_BYTES);
	if (may_guess && has_upper_case(p, len))
		return tok_fail(err,
			"%s line %u: \"%.*s\" has upper case, but uncased text has none. A "
			"vocab.txt does not name its normalizer: choose --pretokenizer "
			"bert-cased or bert-uncased",
			file, number, len < 60 ? (int)len : 60, (const char *)p);
	return true;
}

static uint32_t
count_lines(char *text, size_t size)
{
	struct tok_lines l = {.next = text, .end = text + size};
	uint32_t n = 0;

	while (n <= TOK_MAX_IDS && tok_line_next(&l))
		n++;
	return n;
}

static bool
parse(const char *file, char *text, size_t size, bool may_guess, struct tok_model *m,
	struct tok_error *err)
{
	const struct tok_utf8_span span = tok_utf8_scan((const uint8_t *)text, size);
	struct tok_lines l = {.next = text, .end = text + size};
	uint32_t lines;

	if (span.end != TOK_UTF8_WHOLE)
		return tok_fail(err, "%s: not UTF-8 at byte %zu", file, span.valid);
	lines = count_lines(text, size);
	if (lines == 0 || lines > TOK_MAX_IDS)
		return tok_fail(
			err, "%s: %u lines or more, expected 1 to %u", file, lines, TOK_MAX_IDS);
	if (!tok_model_init(m, lines, size, 0, err))
		return false;
	for (uint32_t id = 0; tok_line_next(&l); id++) {
		const uint8_t *p = (const uint8_t *)l.p;
		const size_t len = trimmed(p, l.len);

		if (!check_line(file, id + 1, p, len, may_guess, err))
			return false;
		tok_model_put(m, id, p, (uint32_t)len, false);
	}
	return true;
}

/*
 * Of equal lines only the last is a token. BERT's five special tokens are recognised by their text.
 */
static bool
sort_out(const char *file, struct tok_model *m, struct tok_error *err)
{
	enum { UNK, PAD, CLS, SEP, MASK };
	static const char *const special[] = {"[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"};
	struct tok_index x = {0};
	uint32_t found[sizeof(special) / sizeof(special[0])];

	if (!tok_index_init(&x, m, err))
		return false;
	for (uint32_t id = m->n_tokens; id-- > 0;) {
		if (!tok_index_add(&x, id))
			m->token[id] = (struct tok_model_token){0};
	}
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		found[i] = tok_index_find(
			&x, (const uint8_t *)special[i], (uint32_t)strlen(special[i]));
	tok_index_free(&x);
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		if (found[i] != TOK_NO_TOKEN)
			m->token[found[i]].special = true;
	}
	m->bert.unk = found[UNK];
	if (found[CLS] != TOK_NO_TOKEN && found[SEP] != TOK_NO_TOKEN)
		m->shape.around = (struct tok_template){
			.n_before = 1, .before = {found[CLS]}, .n_after = 1, .after = {found[SEP]}};
	return found[UNK] != TOK_NO_TOKEN ||
	       tok_fail(err, "%s: no line is [UNK], the unknown token", file);
}

static bool
find_case(const char *file, const char *pretokenizer, struct tok_model *m, struct tok_error *err)
{
	bool cased = pretokenizer != NULL && strcmp(pretokenizer, "bert-cased") == 0;

	if (pretokenizer != NULL && !cased && strcmp(pretokenizer, "bert-uncased") != 0)
		return tok_fail(err,
			"%s: pretokenizer \"%s\" is not implemented for a vocab.txt (implemented: "
			"bert-uncased, bert-cased)",
			file, pretokenizer);
	m->bert = (struct tok_model_bert){
		.clean_text = true,
		.handle_chinese_chars = true,
		.strip_accents = !cased, /* BertNormalizer: null means "as lowercase" */
		.lowercase = !cased,
		.cleanup = true,
		.max_chars = MAX_CHARS,
	};
	return true;
}

bool
tok_load_bert_vocab(
	const char *path, const char *pretokenizer, struct tok_model *m, struct tok_error *err)
{
	const char *file = tok_shown_path(path);
	size_t size;
	char *text = tok_read_file(path, &size, err);
	bool ok;

	*m = (struct tok_model){
		.format = "vocab.txt", .kind = TOK_KIND_WORDPIECE, .pretok = TOK_PRETOK_BERT};
	if (text == NULL)
		return false;
	ok = find_case(file, pretokenizer, m, err) &&
	     parse(file, text, size, pretokenizer == NULL, m, err) && sort_out(file, m, err);
	free(text);
	if (!ok)
		tok_model_free(m);
	return ok;
}
