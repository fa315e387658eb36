/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot path. A character goes through the map, which holds the open cluster, then white() or
 * plain(). */
#include <string.h>

#include "unicode/grapheme.h"
#include "spm_norm.h"
#include "unicode/word.h"
#include "unicode/utf8.h"
#include "vocab.h"

/* A step writes at most the held white space, and a text for each of six characters. */
#define STEP_MAX (TOK_SPM_WHITE_MAX + 4 + 6 * TOK_SPM_TEXT_MAX)
static_assert(TOK_SPM_OUT > STEP_MAX, "a step has room");

void
tok_spm_init(struct tok_spm_state *s)
{
	tok_cluster_init(&s->cluster);
	s->decided = s->begun = s->inside = false;
	s->n_held = s->blanks = 0;
	s->n_white = 0;
	s->window.n = 0;
}

static inline void
put(struct tok_spm_sink *k, const uint8_t *p, size_t n)
{
	memcpy(k->out, p, n);
	k->out += n;
}

/* ---- white space ---- */

/* Hold white space: it is dropped if it turns out to be at the end. */
static void
put_white(struct tok_spm_sink *k, const uint8_t *p, size_t n)
{
	struct tok_spm_state *s = k->s;

	if (!k->norm->strip_right) {
		put(k, p, n);
	} else if (n > TOK_SPM_WHITE_MAX - (size_t)s->n_white) {
		k->full = true;
	} else {
		memcpy(s->white + s->n_white, p, n);
		s->n_white = (uint16_t)(s->n_white + n);
	}
}

/* End the run of blanks. */
static void
end_blanks(struct tok_spm_sink *k)
{
	static const uint8_t blank[] = " ", mark[] = "\xe2\x96\x81";
	const bool marked = k->s->blanks > 1 && k->norm->squeeze_to_mark;

	if (k->s->blanks == 0)
		return;
	k->s->blanks = 0;
	put_white(k, marked ? mark : blank, marked ? 3 : 1);
}

/* Take a character that is not white space. */
static inline void
begin_text(struct tok_spm_sink *k)
{
	struct tok_spm_state *s = k->s;

	if (s->blanks > 0)
		end_blanks(k);
	if (s->n_white > 0) {
		put(k, s->white, s->n_white);
		s->n_white = 0;
	}
	s->begun = true;
}

static void
take_white(struct tok_spm_sink *k, const uint8_t *p, size_t n)
{
	struct tok_spm_state *s = k->s;

	if (k->norm->strip_left && !s->begun)
		return;
	if (*p == ' ' && k->norm->squeeze) {
		s->blanks = (uint8_t)(s->blanks == 0 ? 1 : 2);
		return;
	}
	end_blanks(k);
	put_white(k, p, n);
}

/* Take characters from the map. */
static void
take(struct tok_spm_sink *k, const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;

	if (!k->norm->white) {
		put(k, p, n);
		return;
	}
	while (p < end) {
		const uint32_t len = tok_utf8_length(*p);

		if (tok_is_white(tok_utf8_decode(p, len))) {
			take_white(k, p, len);
		} else {
			begin_text(k);
			put(k, p, len);
		}
		p += len;
	}
}

static void
end_text(struct tok_spm_sink *k)
{
	end_blanks(k);
	tok_spm_init(k->s);
}

/* ---- the map ---- */

static void
take_mapped(struct tok_spm_sink *k, uint32_t at)
{
	const uint8_t *text = k->norm->text + at;

	take(k, text, strlen((const char *)text));
}

/* Map each character of p[0 .. n) separately. */
static void
take_characters(struct tok_spm_sink *k, const uint8_t *p, uint32_t n)
{
	bool open;

	for (const uint8_t *end = p + n; p < end;) {
		const uint32_t len = tok_utf8_length(*p);
		const uint32_t text = tok_spm_find(k->norm, p, len, &open);

		if (text == TOK_SPM_NO_TEXT)
			take(k, p, len);
		else
			take_mapped(k, text);
		p += len;
	}
}

/* End the open cluster. */
static inline void
end_cluster(struct tok_spm_sink *k)
{
	struct tok_spm_state *s = k->s;
	uint32_t text;
	bool open;

	if (s->n_held == 0)
		return;
	text = tok_spm_find(k->norm, s->held, s->n_held, &open);
	if (text == TOK_SPM_NO_TEXT)
		take_characters(k, s->held, s->n_held);
	else
		take_mapped(k, text);
	s->n_held = 0;
}

uint8_t
tok_spm_property(const struct tok_vocab *v, uint32_t cp)
{
	const uint8_t p = (uint8_t)tok_class_of(v, cp);

	return p == TOK_GR_LVT && (cp - 0xac00) % 28 == 0 ? TOK_GR_LV : p;
}

/* Take the next character. It is held while the cluster has fewer than six bytes and may be in the
 * map. */
static void
take_next(struct tok_spm_sink *k, const uint8_t *p, uint32_t len)
{
	struct tok_spm_state *s = k->s;
	const uint8_t property = tok_spm_property(k->v, tok_utf8_decode(p, len));
	bool open;

	if (tok_cluster_border(&s->cluster, (enum tok_grapheme)(property & TOK_GR_MASK))) {
		end_cluster(k);
		s->decided = false;
	}
	tok_cluster_take(&s->cluster, property);
	if (!s->decided && s->n_held + len > TOK_CLUSTER_BYTES) {
		take_characters(k, s->held, s->n_held);
		s->n_held = 0;
		s->decided = true;
	}
	if (s->decided) {
		take_characters(k, p, len);
		return;
	}
	memcpy(s->held + s->n_held, p, len);
	s->n_held = (uint8_t)(s->n_held + len);
	if (tok_spm_find(k->norm, s->held, s->n_held, &open) == TOK_SPM_NO_TEXT && !open) {
		take_characters(k, s->held, s->n_held);
		s->n_held = 0;
		s->decided = true;
	}
}

/* Properties of which no two belong to one cluster, one right after the other. */
#define LONE                                                                                       \
	(1u << TOK_GR_OTHER | 1u << TOK_GR_LV | 1u << TOK_GR_LVT | 1u << TOK_GR_CONSONANT |        \
		1u << TOK_GR_PICTOGRAPHIC)

static inline bool
is_lone(const struct tok_vocab *v, const uint8_t *p)
{
	if (*p < 0x80)
		return *p >= 0x20 && *p < 0x7f;
	return LONE >> (tok_spm_property(v, tok_utf8_decode(p, tok_utf8_length(*p))) &
			       TOK_GR_MASK) &
	       1;
}

/* Is this character unchanged if it is a cluster? */
static inline bool
stays(const struct tok_spm_norm *norm, const uint8_t *p, uint32_t len)
{
	bool open;

	if (len == 1)
		return norm->stays[*p];
	return tok_spm_find(norm, p, len, &open) == TOK_SPM_NO_TEXT &&
	       !tok_is_white(tok_utf8_decode(p, len));
}

/* Eight bytes at a time: c in each of them. */
#define EACH(c) (0x0101010101010101ull * (c))

/* Are the eight bytes at p printable ASCII? */
static inline bool
are_printable(const uint8_t *p)
{
	const uint64_t x = tok_load8(p);

	return ((x | (x - EACH(0x20)) | (x + EACH(0x01))) & EACH(0x80)) == 0;
}

/* The sign of each byte that is a blank. A byte after one may have it too. */
static inline uint64_t
find_blanks(const uint8_t *p)
{
	const uint64_t x = tok_load8(p) ^ EACH(' ');

	return (x - EACH(0x01)) & ~x & EACH(0x80);
}

/* End of the characters at p that are unchanged and are each a cluster: another one that can be
 * must follow. */
static const uint8_t *
plain_end(const struct tok_vocab *v, const uint8_t *p, const uint8_t *end)
{
	const struct tok_spm_norm *norm = &v->unigram.norm;
	uint32_t len;

	if (!is_lone(v, p))
		return p;
	for (; (len = tok_utf8_length(*p)) < end - p; p += len) {
		while (norm->all_stay && end - p > 9 && are_printable(p) && are_printable(p + 1))
			p += 8;
		while (end - p > 1 && *p < 0x80 && norm->stays[*p] && p[1] >= 0x20 && p[1] < 0x7f)
			p++;
		len = tok_utf8_length(*p);
		if (len >= end - p || !is_lone(v, p + len) || !stays(norm, p, len))
			break;
	}
	return p;
}

/* Write unchanged text as long as its blanks are single and between words. Returns its end. */
static const uint8_t *
take_words(struct tok_spm_sink *k, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *from = p;

	if (*p != ' ')
		begin_text(k);
	else if (!k->s->begun || k->s->blanks > 0 || k->s->n_white > 0)
		return p;
	for (; end - p > 8 && (find_blanks(p) & find_blanks(p + 1)) == 0; p += 8)
		put(k, p, 8);
	if (p > from && p[-1] == ' ') { /* the last one, if it is */
		p--;
		k->out--;
	}
	return p;
}

/* Write unchanged text, a word at a time. */
static void
take_plain(struct tok_spm_sink *k, const uint8_t *p, const uint8_t *end)
{
	if (!k->norm->white) {
		put(k, p, (size_t)(end - p));
		return;
	}
	while (p < end) {
		const uint8_t *word = p = take_words(k, p, end);

		while (p < end && *p != ' ')
			p++;
		if (p > word) {
			begin_text(k);
			put(k, word, (size_t)(p - word));
		}
		while (p < end && *p == ' ')
			take_white(k, p++, 1);
	}
}

/* ---- together ---- */

static void
take_piece(struct tok_spm_sink *k, struct tok_spm_piece *piece, const uint8_t *stop)
{
	struct tok_spm_state *s = k->s;

	while (piece->p < piece->end && k->out < stop && !k->full) {
		const uint8_t *p = piece->p, *plain = p;
		const size_t room = (size_t)(stop - k->out);

		if (k->norm->unit == NULL) {
			piece->p += tok_utf8_length(*p);
			take(k, p, (size_t)(piece->p - p));
			continue;
		}
		if (s->cluster.before != TOK_GR_PREPEND)
			plain = plain_end(
				k->v, p, (size_t)(piece->end - p) > room ? p + room : piece->end);
		if (plain > p) {
			end_cluster(k);
			tok_cluster_init(&s->cluster);
			s->cluster.before = TOK_GR_OTHER;
			s->decided = true;
			take_plain(k, p, plain);
		} else {
			const uint32_t len = tok_utf8_length(*p);

			take_next(k, p, len);
			plain = p + len;
		}
		piece->p = plain;
	}
}

size_t
tok_spm_next(const struct tok_vocab *v, struct tok_spm_state *s, struct tok_spm_piece *piece,
	uint8_t *out)
{
	struct tok_spm_sink k = {.v = v, .norm = &v->unigram.norm, .s = s, .out = out};

	const uint8_t *stop = out + TOK_SPM_OUT - STEP_MAX;

	if (k.norm->sentencepiece) {
		tok_spm_take_longest(&k, piece, stop);
		return k.full ? TOK_SPM_FULL : (size_t)(k.out - out);
	}
	take_piece(&k, piece, stop);
	if (piece->p == piece->end && piece->last && k.out < stop && !k.full) {
		end_cluster(&k);
		end_text(&k);
		piece->last = false;
	}
	return k.full ? TOK_SPM_FULL : (size_t)(k.out - out);
}
