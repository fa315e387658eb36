/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The normalizer of a .model, as in sentencepiece (normalizer.cc): from left to right, it replaces
 * the longest known prefix of the remaining text. Hot path.
 *
 * The output goes through take(). It holds blanks back if those at the end of the text are dropped;
 * U+2581 counts as a blank.
 */
#include <string.h>

#include "unicode/utf8.h"
#include "spm_norm.h"
#include "vocab.h"

#define MARK TOK_METASPACE
#define MARK_BYTES TOK_METASPACE_BYTES

/* A prefix of the text, and its replacement. */
struct unit {
	uint32_t len; /* 0: undecided until more text comes */
	const uint8_t *to;
	uint32_t n;
};

/* ---- known prefixes ---- */

static bool
has_children(const struct tok_spm_norm *norm, uint32_t at)
{
	for (uint32_t byte = 1; byte <= 0xff; byte++) {
		if ((norm->unit[at ^ byte] & (1u << 31 | 0xff)) == byte)
			return true;
	}
	return false;
}

uint32_t
tok_spm_find_longest(
	const struct tok_spm_norm *norm, const uint8_t *p, size_t n, uint32_t *len, bool *open)
{
	uint32_t at = tok_spm_offset(norm->unit[0]), text = TOK_SPM_NO_TEXT, keys = 0;

	*open = false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t unit;

		at ^= p[i];
		unit = norm->unit[at];
		if (p[i] == 0 || (unit & (1u << 31 | 0xff)) != p[i])
			return text;
		at ^= tok_spm_offset(unit);
		if (unit >> 8 & 1) {
			text = norm->unit[at] & ~(1u << 31);
			*len = i + 1;
			if (++keys == TOK_SPM_KEYS)
				return text;
		}
	}
	*open = has_children(norm, at);
	return text;
}

#define OWN_KEYS 64 /* that begin one another, likewise */

/* Length of the longest USER_DEFINED piece that p[0 .. n) begins with, or 0. It is always less than
   TOK_SPM_WINDOW. */
static uint32_t
find_own(const struct tok_longest *trie, const uint8_t *p, size_t n, bool *open)
{
	const uint32_t most = n < TOK_SPM_WINDOW - 1 ? (uint32_t)n : TOK_SPM_WINDOW - 1;
	uint32_t node = TOK_LONGEST_GO_ON, longest = 0, keys = 0;

	*open = false;
	for (uint32_t i = 0; i < most; i++) {
		node = tok_longest_child(&trie->node[node], p[i]);
		if (node == TOK_NO_TOKEN)
			return longest;
		if (tok_longest_token(trie, node) == TOK_NO_TOKEN)
			continue;
		longest = i + 1;
		if (++keys == OWN_KEYS)
			return longest;
	}
	*open = n < TOK_SPM_WINDOW - 1 && tok_longest_goes_on(&trie->node[node]);
	return longest;
}

/* The known prefix of p[0 .. n), at least one character. `last`: the text ends there. */
static struct unit
unit_at(const struct tok_vocab *v, const uint8_t *p, size_t n, bool last)
{
	const struct tok_added *own = &v->added[TOK_ADDED_TEXT_SET];
	const struct tok_spm_norm *norm = &v->unigram.norm;
	uint32_t text, len;
	bool open;

	if (own->n > 0) {
		len = find_own(&own->trie, p, n, &open);
		if (open && !last)
			return (struct unit){0};
		if (len > 0)
			return (struct unit){len, p, len};
	}
	if (norm->unit != NULL) {
		text = tok_spm_find_longest(norm, p, n, &len, &open);
		if (open && !last)
			return (struct unit){0};
		if (text != TOK_SPM_NO_TEXT) {
			const char *to = (const char *)norm->text + text;

			return (struct unit){len, (const uint8_t *)to, (uint32_t)strlen(to)};
		}
	}
	if (*p == (uint8_t)*TOK_SPM_BROKEN)
		return (struct unit){
			1, (const uint8_t *)TOK_UTF8_REPLACEMENT, TOK_UTF8_REPLACEMENT_BYTES};
	len = tok_utf8_length(*p);
	return (struct unit){len, p, len};
}

/* ---- output ---- */

static inline void
put(struct tok_spm_sink *k, const uint8_t *p, size_t n)
{
	memcpy(k->out, p, n);
	k->out += n;
}

static void
put_blank(struct tok_spm_sink *k)
{
	if (!k->norm->white)
		*k->out++ = ' ';
	else if (k->s->n_white == TOK_SPM_WHITE_MAX)
		k->full = true;
	else
		k->s->n_white++;
}

/* Write text without blanks. The blanks before it are kept. */
static inline void
put_text(struct tok_spm_sink *k, const uint8_t *p, size_t n)
{
	if (k->s->n_white > 0) {
		memset(k->out, ' ', k->s->n_white);
		k->out += k->s->n_white;
		k->s->n_white = 0;
	}
	put(k, p, n);
}

/* Number of bytes at p before the next blank. */
static size_t
text_length(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *at = p;

	while (at < end && *at != ' ' &&
		!(end - at >= MARK_BYTES && memcmp(at, MARK, MARK_BYTES) == 0))
		at++;
	return (size_t)(at - p);
}

/* Something other than a single blank came, so the text has begun. */
static inline void
begin(struct tok_spm_sink *k)
{
	if (k->s->begun)
		return;
	k->s->begun = true;
	if (k->norm->dummy == TOK_DUMMY_PREFIX)
		put_blank(k);
}

static void
take(struct tok_spm_sink *k, const uint8_t *p, uint32_t n)
{
	const uint8_t *end = p + n;

	if (!k->norm->white) {
		begin(k);
		put(k, p, n);
		return;
	}
	if (n != 1 || *p != ' ')
		begin(k);
	while (!k->s->inside && p < end && *p == ' ')
		p++;
	if (p == end)
		return;
	k->s->inside = end[-1] != ' ';
	while (p < end && !k->full) {
		const size_t text = text_length(p, end);

		if (text > 0)
			put_text(k, p, text);
		p += text;
		if (p < end) {
			put_blank(k);
			p += *p == ' ' ? 1 : MARK_BYTES;
		}
	}
}

/* Write unchanged ASCII in one go. */
static void
take_plain(struct tok_spm_sink *k, const uint8_t *p, const uint8_t *end)
{
	if (!k->norm->white) {
		begin(k);
		put(k, p, (size_t)(end - p));
		return;
	}
	while (p < end && !k->full) {
		const uint8_t *word = p;

		while (p < end && *p != ' ')
			p++;
		if (p > word) {
			begin(k);
			put_text(k, word, (size_t)(p - word));
			k->s->inside = true;
		}
		for (; p < end && *p == ' '; p++) {
			if (k->s->inside)
				put_blank(k);
			k->s->inside = false;
		}
	}
}

static void
end_text(struct tok_spm_sink *k)
{
	if (k->s->begun && k->norm->dummy == TOK_DUMMY_SUFFIX)
		*k->out++ = ' ';
	tok_spm_init(k->s);
}

/* ---- together ---- */

/* Normalize the held bytes and those after them. False: undecided; the piece is held as well. */
static bool
take_held(struct tok_spm_sink *k, struct tok_spm_piece *piece)
{
	struct tok_spm_state *s = k->s;
	const size_t left = (size_t)(piece->end - piece->p);
	const size_t more = left < TOK_SPM_WINDOW ? left : TOK_SPM_WINDOW;
	const uint32_t held = s->window.n;
	uint8_t both[2 * TOK_SPM_WINDOW];
	struct unit unit;

	memcpy(both, s->window.held, held);
	if (more > 0)
		memcpy(both + held, piece->p, more);
	unit = unit_at(k->v, both, held + more, piece->last && more == left);
	if (unit.len == 0) { /* so the bytes held are fewer than a window */
		memcpy(s->window.held + held, piece->p, more);
		s->window.n = (uint16_t)(held + more);
		piece->p += more;
		return false;
	}
	if (unit.len < held) {
		s->window.n = (uint16_t)(held - unit.len);
		memcpy(s->window.held, both + unit.len, s->window.n);
	} else {
		s->window.n = 0;
		piece->p += unit.len - held;
	}
	take(k, unit.to, unit.n);
	return true;
}

/* End of the unchanged ASCII at p: each of its characters is followed by another one. */
static const uint8_t *
plain_end(const struct tok_spm_norm *norm, const uint8_t *p, const uint8_t *end)
{
	while (end - p > 1 && p[0] < 0x80 && norm->stays[p[0]] && p[1] < 0x80)
		p++;
	return p;
}

/* Normalize the prefix of the piece. False: it is undecided and held. */
static bool
take_next(struct tok_spm_sink *k, struct tok_spm_piece *piece, const uint8_t *stop)
{
	struct tok_spm_state *s = k->s;
	const size_t n = (size_t)(piece->end - piece->p), room = (size_t)(stop - k->out);
	const uint8_t *plain =
		plain_end(k->norm, piece->p, n > room ? piece->p + room : piece->end);
	struct unit unit;

	if (plain > piece->p) {
		take_plain(k, piece->p, plain);
		piece->p = plain;
		return true;
	}
	unit = unit_at(k->v, piece->p, n, piece->last);
	if (unit.len == 0) {
		memcpy(s->window.held, piece->p, n);
		s->window.n = (uint16_t)n;
		piece->p += n;
		return false;
	}
	take(k, unit.to, unit.n);
	piece->p += unit.len;
	return true;
}

void
tok_spm_take_longest(struct tok_spm_sink *k, struct tok_spm_piece *piece, const uint8_t *stop)
{
	bool goes_on = true;

	while (goes_on && k->out < stop && !k->full) {
		if (k->s->window.n > 0 && (piece->p < piece->end || piece->last))
			goes_on = take_held(k, piece);
		else if (piece->p < piece->end)
			goes_on = take_next(k, piece, stop);
		else
			break;
	}
	if (piece->p == piece->end && k->s->window.n == 0 && piece->last && k->out < stop &&
		!k->full) {
		end_text(k);
		piece->last = false;
	}
}
