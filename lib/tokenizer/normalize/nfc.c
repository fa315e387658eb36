/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streaming normalization to form C. pass() skips text that is already in form C. Where it stops,
 * hold() decomposes, orders and composes, up to the next starter that does not compose. Hot path.
 */
#include <string.h>

#include "nfc.h"
#include "unicode/nfc_tables.h"
#include "unicode/utf8.h"

#define NO_STARTER UINT32_MAX
#define OWN_MARKS 3 /* most marks that a starter decomposes to */
#define BLOCK 32    /* bytes looked at together; the compiler makes vectors of it */

/* ---- text already in form C ---- */

/*
 * Is this a continuation byte, or the first byte of characters with a border before them only?
 * These are starters that compose with nothing before them: U+0000 to U+02FF, U+0400 to U+047F,
 * U+4000 to U+9FFF.
 */
static inline bool
plain(uint8_t b)
{
	return (b < 0xcc) | ((b & 0xfe) == 0xd0) | ((uint8_t)(b - 0xe4) <= 5);
}

static inline bool
plain_block(const uint8_t *p)
{
	uint8_t others = 0;

	for (int i = 0; i < BLOCK; i++)
		others |= !plain(p[i]);
	return others == 0;
}

/* Skip plain blocks from the beginning of a character. Returns the beginning of the last one in
 * them.
 */
static const uint8_t *
skip_plain(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *from = p;

	while (end - p >= BLOCK && plain_block(p))
		p += BLOCK;
	if (p == from)
		return p;
	do
		p--;
	while ((*p & 0xc0) == 0x80);
	return p;
}

static inline uint32_t
decode(const uint8_t *p, uint32_t *len)
{
	*len = tok_utf8_length(*p);
	return tok_utf8_decode(p, *len);
}

/* Is the character from p to end a starter that no following text can change? */
static bool
is_certain(const uint8_t *p, const uint8_t *end)
{
	uint32_t len, cp;

	if (p == end)
		return true;
	cp = decode(p, &len);
	return p + len == end && tok_nfc_props_of(cp) == 0 && !tok_nfc_is_open(cp);
}

/*
 * The end of the text that can be released unchanged while nothing is held, by the quick check of
 * UAX #15. It ends before a starter that the following text may change.
 */
static const uint8_t *
pass(const struct tok_nfc_piece *piece)
{
	const uint8_t *p = piece->p, *end = piece->end;
	const uint8_t *starter = p, *block = p; /* look at no block before `block` again */
	uint32_t ccc = 0, marks = 0, len, props, next;

	while (p < end) {
		if (p >= block) {
			p = skip_plain(p, end);
			block = end - p > BLOCK ? p + BLOCK : end;
		}
		len = tok_utf8_length(*p);
		props = plain(*p) ? 0 : tok_nfc_props_of(tok_utf8_decode(p, len));
		next = props & TOK_NFC_CCC;
		if (next == 0) {
			if (props & TOK_NFC_CHECK)
				return starter;
			starter = p;
			marks = 0;
		} else if (props & TOK_NFC_CHECK || next < ccc ||
			   ++marks > TOK_NFC_MARKS_MAX - OWN_MARKS) {
			/* The limit of marks may be reached: hold() counts them exactly. */
			return starter;
		}
		ccc = next;
		p += len;
	}
	return piece->last || is_certain(starter, end) ? end : starter;
}

/*
 * The same for form D, where no starter changes: the end of the text without decompositions and
 * marks.
 */
static const uint8_t *
pass_starters(const struct tok_nfc_piece *piece)
{
	const uint8_t *p = piece->p;
	uint32_t len, cp, n;

	for (; p < piece->end; p += len) {
		if (*p < 0xc0) {
			len = 1;
			continue;
		}
		cp = decode(p, &len);
		if ((tok_nfc_props_of(cp) & TOK_NFC_CCC) != 0 || cp - TOK_NFC_S < TOK_NFC_SS ||
			tok_nfc_decompose(cp, &n) != NULL)
			break;
	}
	return p;
}

/* ---- text that may change ---- */

/* Sort marks by class, stable. A counting sort: linear time for every order. */
static void
order_marks(struct tok_nfc *n)
{
	uint32_t few[TOK_NFC_MARKS_MAX], at[TOK_NFC_CCC + 2] = {0}, i;
	uint32_t *held = n->held, *sorted = n->more == NULL ? few : n->more + n->room;

	for (i = 1; i < n->n; i++)
		at[(held[i] >> TOK_NFC_CP_BITS) + 1]++;
	for (i = 1; i <= TOK_NFC_CCC; i++)
		at[i] += at[i - 1];
	for (i = 1; i < n->n; i++)
		sorted[at[held[i] >> TOK_NFC_CP_BITS]++] = held[i];
	memcpy(held + 1, sorted, (n->n - 1) * sizeof(*sorted));
	n->unordered = false;
}

/* All marks are known: sort them, and compose those that are not blocked (Unicode 16, D117). */
static void
compose_held(struct tok_nfc *n)
{
	uint32_t blocked = 0, kept = 1;

	if (n->unordered)
		order_marks(n);
	if (n->held[0] == NO_STARTER || n->decompose)
		return;
	for (uint32_t i = 1; i < n->n; i++) {
		uint32_t ccc = n->held[i] >> TOK_NFC_CP_BITS, composite = 0;

		if (ccc != blocked)
			composite = tok_nfc_compose(n->held[0], n->held[i] & TOK_NFC_CP);
		if (composite != 0) {
			n->held[0] = composite;
		} else {
			n->held[kept++] = n->held[i];
			blocked = ccc;
		}
	}
	n->n = kept;
}

/* Release the held characters. UTF-8 is written over held[]: a character has at most the 4 bytes
 * of its entry, so no unread entry is overwritten. */
static enum tok_nfc_result
let_go(struct tok_nfc *n, struct tok_nfc_span *span)
{
	uint8_t *out = (uint8_t *)n->held;

	for (uint32_t i = n->held[0] == NO_STARTER; i < n->n; i++)
		out += tok_utf8_encode(n->held[i] & TOK_NFC_CP, out);
	span->p = (const uint8_t *)n->held;
	span->n = (size_t)(out - span->p);
	n->n = n->n_in = 0;
	return TOK_NFC_SPAN;
}

/* Compose a starter with the held one if they compose. Returns whether it did. */
static bool
absorb(struct tok_nfc *n, uint32_t starter)
{
	uint32_t composite = 0;

	if (n->n == 1 && n->held[0] != NO_STARTER)
		composite = tok_nfc_compose(n->held[0], starter);
	if (composite != 0)
		n->held[0] = composite;
	return composite != 0;
}

/*
 * Hold a character, decomposed. It may be a starter only if nothing is held. Further starters of
 * its decomposition compose with the first. The exceptions are a few Tibetan letters with two
 * starters that never compose: the second is stored among the marks, with a class below theirs.
 */
static void
take(struct tok_nfc *n, const uint32_t *part, uint32_t n_parts)
{
	for (uint32_t i = 0; i < n_parts; i++) {
		if (part[i] >> TOK_NFC_CP_BITS == 0 && i > 0 && !n->decompose && absorb(n, part[i]))
			continue;
		if (part[i] >> TOK_NFC_CP_BITS != 0 && n->n == 0)
			n->held[n->n++] = NO_STARTER;
		if (n->n > 1 && n->held[n->n - 1] >> TOK_NFC_CP_BITS > part[i] >> TOK_NFC_CP_BITS)
			n->unordered = true;
		n->held[n->n++] = part[i];
	}
}

/* Is there room for n_parts more? For the first ones there is. */
static inline bool
has_room(struct tok_nfc *n, uint32_t n_parts)
{
	return n->n + n_parts <= n->room || (n->grow != NULL && n->grow(n));
}

/* Can later text change the held characters, of which this is the last? */
static bool
is_open(const struct tok_nfc *n, uint32_t held)
{
	return held >> TOK_NFC_CP_BITS != 0 || (!n->decompose && tok_nfc_is_open(held));
}

static enum tok_nfc_result
hold(struct tok_nfc *n, struct tok_nfc_piece *piece, struct tok_nfc_span *span)
{
	while (piece->p < piece->end) {
		uint32_t len, cp = decode(piece->p, &len), n_parts = 1;
		uint32_t props = tok_nfc_props_of(cp);
		uint32_t itself = (props & TOK_NFC_CCC) << TOK_NFC_CP_BITS | cp;
		const uint32_t *part = tok_nfc_decompose(cp, &n_parts);
		uint32_t letters[3];

		if (n->decompose && cp - TOK_NFC_S < TOK_NFC_SS) {
			n_parts = tok_nfc_letters(cp, letters);
			part = letters;
		} else if (part == NULL) {
			part = &itself;
		}
		if (n->n > 0 && part[0] >> TOK_NFC_CP_BITS == 0) {
			compose_held(n);
			if (n->decompose || !(props & TOK_NFC_CHECK) || !absorb(n, part[0]))
				return let_go(n, span);
		} else if (has_room(n, n_parts)) {
			take(n, part, n_parts);
		} else {
			return TOK_NFC_FULL;
		}
		n->n_in += len;
		piece->p += len;
	}
	if (n->n == 0)
		return TOK_NFC_DONE;
	if (piece->last)
		compose_held(n);
	else if (is_open(n, n->held[n->n - 1]))
		return TOK_NFC_DONE;
	return let_go(n, span);
}

enum tok_nfc_result
tok_nfc_next(struct tok_nfc *n, struct tok_nfc_piece *piece, struct tok_nfc_span *span)
{
	n->held = n->more == NULL ? n->own : n->more;
	if (n->n == 0) {
		span->p = piece->p;
		piece->p = n->decompose ? pass_starters(piece) : pass(piece);
		span->n = (size_t)(piece->p - span->p);
		if (span->n > 0)
			return TOK_NFC_SPAN;
	}
	return hold(n, piece, span);
}
