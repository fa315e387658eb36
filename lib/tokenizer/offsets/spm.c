/* SPDX-License-Identifier: BSD-3-Clause */
#include "spm.h"
#include "normalize/spm_norm.h"
#include "unicode/word.h"
#include "unicode/utf8.h"

/* ---- the map ---- */

static uint8_t
property_at(const struct tok_spm_chars *c, size_t at, uint32_t *len)
{
	*len = tok_utf8_length(c->text[at]);
	return tok_spm_property(c->vocab, tok_utf8_decode(c->text + at, *len));
}

/* Where the cluster that begins at c->at ends. */
static size_t
find_cluster_end(struct tok_spm_chars *c)
{
	size_t at = c->at;
	uint8_t property;
	uint32_t len;

	property = property_at(c, at, &len);
	do {
		tok_cluster_take(&c->cluster, property);
		at += len;
		if (at < c->end)
			property = property_at(c, at, &len);
	} while (at < c->end &&
		 !tok_cluster_border(&c->cluster, (enum tok_grapheme)(property & TOK_GR_MASK)));
	return at;
}

/* Is there a text for the next n bytes? They are its part then. */
static bool
take_mapped(struct tok_spm_chars *c, size_t n)
{
	const struct tok_spm_norm *norm = &c->vocab->unigram.norm;
	const uint8_t *p = c->text + c->at;
	uint32_t text;
	bool open;

	text = tok_spm_find(norm, p, (uint32_t)n, &open);
	if (text == TOK_SPM_NO_TEXT)
		return false;
	c->part.p = norm->text + text;
	c->part.end = c->part.p + strlen((const char *)c->part.p);
	c->part.n = (uint32_t)tok_utf8_count(p, n);
	c->at += n;
	return true;
}

static bool
next_part(struct tok_spm_chars *c)
{
	const bool map = c->vocab->unigram.norm.unit != NULL;
	uint32_t len;

	c->part = (struct tok_spm_part){0};
	if (c->at == c->end)
		return false;
	if (map && c->at == c->cluster_end) {
		c->cluster_end = find_cluster_end(c);
		if (c->cluster_end - c->at <= TOK_CLUSTER_BYTES &&
			take_mapped(c, c->cluster_end - c->at))
			return true;
	}
	len = tok_utf8_length(c->text[c->at]);
	if (map && take_mapped(c, len))
		return true;
	c->part.p = c->text + c->at;
	c->part.end = c->part.p + len;
	c->part.n = 1;
	c->at += len;
	return true;
}

/* Something comes from the next character. */
static void
count_one(struct tok_spm_chars *c)
{
	c->last.begin = c->from;
	c->from += tok_utf8_length(c->text[c->from]);
	c->last.end = c->from;
}

static void
count_rest(struct tok_spm_chars *c)
{
	for (; c->part.n > 0; c->part.n--)
		count_one(c);
}

/*
 * The next character after the map. The first character of a part's new text comes from the first
 * of its old one, and so on. If there are more, the others come from the last: U+FB01 becomes "fi",
 * both from it. A part whose new text is empty is skipped, except that a character that was one too
 * many comes from it: in U+FB01 U+0001, the i comes from U+0001. So it is in the reference.
 */
static bool
next_mapped(struct tok_spm_chars *c, struct tok_spm_char *next)
{
	bool extra = c->part.n == 0;

	if (c->part.p == c->part.end)
		return false;
	if (!extra) {
		count_one(c);
		c->part.n--;
	}
	next->p = c->part.p;
	next->len = tok_utf8_length(*next->p);
	next->from = c->last;
	c->part.p += next->len;
	if (c->part.p < c->part.end)
		return true;
	count_rest(c);
	while (next_part(c) && c->part.p == c->part.end) {
		if (extra) {
			count_one(c);
			c->part.n--;
			next->from = c->last;
			extra = false;
		}
		count_rest(c);
	}
	return true;
}

/* ---- white space ---- */

static bool
is_white(const struct tok_spm_char *c)
{
	return tok_is_white(tok_utf8_decode(c->p, c->len));
}

/* The next character after Strip. */
static bool
next_kept(struct tok_spm_chars *c, struct tok_spm_char *next)
{
	do {
		if (c->keep == 0 || !next_mapped(c, next))
			return false;
		c->keep--;
		c->begun |= !is_white(next);
	} while (c->vocab->unigram.norm.strip_left && !c->begun);
	return true;
}

static bool
next_ahead(struct tok_spm_chars *c, struct tok_spm_char *next)
{
	if (c->ahead.len == 0)
		return next_kept(c, next);
	*next = c->ahead;
	c->ahead.len = 0;
	return true;
}

bool
tok_spm_chars_next(struct tok_spm_chars *c, struct tok_spm_char *next)
{
	static const uint8_t mark[] = TOK_METASPACE;
	const struct tok_spm_norm *norm = &c->vocab->unigram.norm;
	bool several = false;

	if (!next_ahead(c, next))
		return false;
	if (!norm->squeeze || *next->p != ' ')
		return true;
	while (next_kept(c, &c->ahead) && *c->ahead.p == ' ') {
		next->from = c->ahead.from;
		c->ahead.len = 0;
		several = true;
	}
	if (several && norm->squeeze_to_mark) {
		next->p = mark;
		next->len = TOK_METASPACE_BYTES;
	}
	return true;
}

/* ---- all of it ---- */

/* Characters of the map up to the last that is no white space. */
static size_t
count_kept(const struct tok_spm_chars *of)
{
	struct tok_spm_chars c = *of;
	struct tok_spm_char next;
	size_t n = 0, keep = 0;

	while (next_mapped(&c, &next)) {
		n++;
		if (!is_white(&next))
			keep = n;
	}
	return keep;
}

void
tok_spm_chars_open(struct tok_spm_chars *c, const struct tok_vocab *v, const uint8_t *text,
	size_t begin, size_t end)
{
	*c = (struct tok_spm_chars){.vocab = v,
		.text = text,
		.at = begin,
		.end = end,
		.from = begin,
		.cluster_end = begin,
		.keep = SIZE_MAX};
	tok_cluster_init(&c->cluster);
	/* What the map leaves nothing of before all others is not counted: what follows it comes
	 * from so many characters before. */
	while (next_part(c) && c->part.p == c->part.end)
		;
	if (v->unigram.norm.strip_right)
		c->keep = count_kept(c);
}
