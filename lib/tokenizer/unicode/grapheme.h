/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended grapheme clusters (UAX #29, Unicode 17.0), reduced to clusters of fewer than six bytes.
 * Two regional indicators have more, so they are like any other character.
 */
#pragma once

#include "tok.h"

/* Grapheme_Cluster_Break, and what GB9c and GB11 need. The lower bits of a property. */
enum tok_grapheme {
	TOK_GR_OTHER = 0,
	TOK_GR_CR = 1,
	TOK_GR_LF = 2,
	TOK_GR_CONTROL = 3,
	TOK_GR_EXTEND = 4,
	TOK_GR_ZWJ = 5,
	TOK_GR_SPACING = 6,
	TOK_GR_PREPEND = 7,
	TOK_GR_L = 8,
	TOK_GR_V = 9,
	TOK_GR_T = 10,
	TOK_GR_LV = 11, /* the tables have LVT for all syllables */
	TOK_GR_LVT = 12,
	TOK_GR_PICTOGRAPHIC = 13,
	TOK_GR_CONSONANT = 14, /* Indic_Conjunct_Break */
	TOK_GR_START = 15,     /* of the text */
};
#define TOK_GR_MASK 0x0fu
#define TOK_GR_INCB_EXTEND 0x10u
#define TOK_GR_INCB_LINKER 0x20u

/* Runs of equal property: first code point << 6 | property; a run ends where the next begins. */
extern const uint32_t tok_grapheme_runs[];
extern const uint32_t tok_grapheme_n_runs;

static inline void
tok_cluster_init(struct tok_cluster *c)
{
	*c = (struct tok_cluster){.before = TOK_GR_START};
}

/* Is there a boundary between the last character and one of class `after`? */
static inline bool
tok_cluster_border(const struct tok_cluster *c, enum tok_grapheme after)
{
	const enum tok_grapheme before = (enum tok_grapheme)c->before;

	switch (before) {
	case TOK_GR_START:
	case TOK_GR_CONTROL:
	case TOK_GR_LF:
		return true; /* GB1, GB4 */
	case TOK_GR_CR:
		return after != TOK_GR_LF; /* GB3, GB4 */
	default:
		break;
	}
	switch (after) {
	case TOK_GR_CONTROL:
	case TOK_GR_CR:
	case TOK_GR_LF:
		return true; /* GB5 */
	case TOK_GR_EXTEND:
	case TOK_GR_ZWJ:
	case TOK_GR_SPACING:
		return false; /* GB9, GB9a */
	default:
		break;
	}
	if (before == TOK_GR_PREPEND)
		return false; /* GB9b */
	switch (after) {
	case TOK_GR_L:
	case TOK_GR_LV:
	case TOK_GR_LVT:
		return before != TOK_GR_L; /* GB6 */
	case TOK_GR_V:
		return before != TOK_GR_L && before != TOK_GR_LV && before != TOK_GR_V; /* GB6, 7 */
	case TOK_GR_T:
		return before != TOK_GR_LV && before != TOK_GR_V && before != TOK_GR_LVT &&
		       before != TOK_GR_T; /* GB7, GB8 */
	case TOK_GR_CONSONANT:
		return c->conjunct != 2; /* GB9c */
	case TOK_GR_PICTOGRAPHIC:
		return c->emoji != 2; /* GB11 */
	default:
		return true; /* GB999 */
	}
}

/* Append the next character, by its property. */
static inline void
tok_cluster_take(struct tok_cluster *c, uint8_t property)
{
	c->before = property & TOK_GR_MASK;
	if (c->before == TOK_GR_CONSONANT)
		c->conjunct = 1;
	else if (property & TOK_GR_INCB_LINKER)
		c->conjunct = c->conjunct > 0 ? 2 : 0;
	else if (!(property & TOK_GR_INCB_EXTEND))
		c->conjunct = 0;
	if (c->before == TOK_GR_PICTOGRAPHIC)
		c->emoji = 1;
	else if (c->before == TOK_GR_ZWJ)
		c->emoji = c->emoji == 1 ? 2 : 0;
	else if (c->before != TOK_GR_EXTEND || c->emoji == 2)
		c->emoji = 0;
}
