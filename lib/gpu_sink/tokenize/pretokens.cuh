/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The second phase: where pretokens begin, by the vocabulary's own table of steps
 * (pretokenize/pretok.h). What a border is depends on nothing before it. So each thread starts in
 * its chunk as if a border were there, and lists the borders that follow. Where the list of one
 * chunk runs into a border that a later chunk has listed, both agree from there on. The chain of
 * chunks that begins with the first one has the true borders.
 *
 * Lists that do not agree for long take time, but are never wrong.
 */
#pragma once

#include "arrays.cuh"
#include "pretokenize/pretok.h"
#include "unicode/utf8.h"

#define TOKG_NO_BORDER UINT32_MAX
#define TOKG_STEPS_MAX (8 * TOKG_WORD_MAX) /* for one pretoken: held text is stepped again */

/* A pretoken that is being scanned. */
struct tokg_border_scan {
	uint32_t at, held, state;
};

/* Take the next step; `at` is before the end. As tok_pretok_step_scan. */
TOKG_DEV void
tokg_border_step(const struct tok_vocab *v, const struct tokg_text *t, const struct tokg_arrays *a,
	struct tokg_border_scan *s)
{
	const uint32_t len = tok_utf8_length(t->bytes[s->at]);
	const enum tok_pretok_step step = tok_pretok_table_step(v, &s->state, a->of_class[s->at]);

	if (step <= TOK_STEP_TAKE_HOLD)
		s->at += len;
	else if (step >= TOK_STEP_CLOSE)
		s->at -= s->held;
	s->held = step == TOK_STEP_HOLD ? s->held + len : (step == TOK_STEP_TAKE_HOLD ? len : 0);
	if (s->at == t->n && s->held > 0 &&
		tok_pretok_table_step(v, &s->state, tok_pretok_end_class(v)) !=
			TOK_STEP_HELD_CLOSE) {
		s->at -= s->held;
		s->held = 0;
	}
}

/*
 * The border after the one at `from`, which is before the end: at most the text's end. Or
 * TOKG_NO_BORDER: the pretoken exceeds a limit.
 */
TOKG_DEV uint32_t
tokg_border_after(const struct tok_vocab *v, const struct tokg_text *t, const struct tokg_arrays *a,
	uint32_t from)
{
	struct tokg_border_scan s = {from, 0, TOK_ST_NONE};

	for (uint32_t steps = 0; steps < TOKG_STEPS_MAX; steps++) {
		tokg_border_step(v, t, a, &s);
		if (s.at - from > TOKG_WORD_MAX)
			break;
		if (s.state == TOK_ST_NONE || s.at == t->n)
			return s.at > from ? s.at : TOKG_NO_BORDER;
	}
	return TOKG_NO_BORDER;
}

/* Is a border in the list of its chunk? */
TOKG_DEV bool
tokg_listed(const struct tokg_arrays *a, uint32_t at)
{
	return a->border[at / TOKG_CHUNK] >> at % TOKG_CHUNK & 1;
}

/* List the borders of a chunk, as if one were at its first character, and find the one after. */
TOKG_DEV void
tokg_list_borders(const struct tok_vocab *v, const struct tokg_text *t, const struct tokg_arrays *a,
	uint32_t chunk)
{
	const uint32_t from = chunk * TOKG_CHUNK;
	const uint32_t end = t->n - from < TOKG_CHUNK ? t->n : from + TOKG_CHUNK;
	uint32_t at = from, listed = 0;

	while (at < end && (t->bytes[at] & 0xc0) == 0x80)
		at++;
	while (at < end) {
		listed |= 1u << at % TOKG_CHUNK;
		at = tokg_border_after(v, t, a, at);
	}
	a->border[chunk] = listed;
	a->leave[chunk] = at;
	a->more[chunk] = 0;
	a->enter[chunk] = from;
	a->live[chunk] = chunk == 0;
}

/* Find where the list of a chunk agrees with that of a later one. */
TOKG_DEV void
tokg_find_meet(const struct tok_vocab *v, const struct tokg_text *t, const struct tokg_arrays *a,
	uint32_t chunk)
{
	uint32_t at = a->leave[chunk];

	while (at < t->n && !tokg_listed(a, at))
		at = tokg_border_after(v, t, a, at);
	a->meet[chunk] = at;
	a->leap[chunk] = at < t->n ? at / TOKG_CHUNK : a->n_chunks;
}

/* Find the chunks of the true chain: leaps of one chunk, two, four, ... All threads. */
TOKG_DEV void
tokg_find_live(tokg_block *b, const struct tokg_arrays *a)
{
	uint32_t *leap = a->leap, *further = a->leap + a->n_chunks;

	for (uint32_t reach = 1; reach < a->n_chunks; reach *= 2) {
		uint32_t *const was = leap;

		for (uint32_t c = b->tid; c < a->n_chunks; c += b->n) {
			const uint32_t to = leap[c];

			if (to < a->n_chunks && a->live[c])
				a->live[to] = 1; /* by all who do: the same */
			further[c] = to < a->n_chunks ? leap[to] : to;
		}
		leap = further;
		further = was;
		tokg_sync(b);
	}
}

/*
 * A chunk of the true chain: tell the next one where it is entered, and list the borders up to
 * there. No other thread does that for the chunks between. False: a limit was exceeded.
 */
TOKG_DEV bool
tokg_hand_over(const struct tok_vocab *v, const struct tokg_text *t, const struct tokg_arrays *a,
	uint32_t chunk)
{
	const uint32_t meet = a->meet[chunk];

	if (meet == TOKG_NO_BORDER)
		return false;
	if (meet < t->n)
		a->enter[meet / TOKG_CHUNK] = meet;
	for (uint32_t at = a->leave[chunk]; at < meet; at = tokg_border_after(v, t, a, at))
		a->more[at / TOKG_CHUNK] |= 1u << at % TOKG_CHUNK;
	return true;
}

/* Find all borders: bits in border[]. False: a pretoken exceeds a limit. */
TOKG_DEV bool
tokg_pretokens(tokg_block *b, const struct tok_vocab *v, const struct tokg_text *t,
	const struct tokg_arrays *a)
{
	uint64_t wrong = 0;

	for (uint32_t c = b->tid; c < a->n_chunks; c += b->n)
		tokg_list_borders(v, t, a, c);
	tokg_sync(b);
	for (uint32_t c = b->tid; c < a->n_chunks; c += b->n)
		tokg_find_meet(v, t, a, c);
	tokg_sync(b);
	tokg_find_live(b, a);
	for (uint32_t c = b->tid; c < a->n_chunks; c += b->n)
		wrong += a->live[c] && !tokg_hand_over(v, t, a, c);
	wrong = tokg_sum(b, wrong);
	for (uint32_t c = b->tid; c < a->n_chunks; c += b->n) {
		const uint32_t own = a->border[c] & ~0u << a->enter[c] % TOKG_CHUNK;

		a->border[c] = (a->live[c] ? own : 0) | a->more[c];
	}
	tokg_sync(b);
	return wrong == 0;
}

/* The border after the one at `at`, when all are found; or the text's end. */
TOKG_DEV uint32_t
tokg_next_border(const struct tokg_text *t, const struct tokg_arrays *a, uint32_t at)
{
	uint32_t chunk = at / TOKG_CHUNK;
	uint32_t bits = a->border[chunk] & ~1u << at % TOKG_CHUNK;

	while (bits == 0 && ++chunk < a->n_chunks)
		bits = a->border[chunk];
	return bits == 0 ? t->n : chunk * TOKG_CHUNK + tokg_lowest(bits);
}
