/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables by code point in two stages: pages of 256, of which equal ones are kept once. Set-up
 * alone: it takes time by the runs that there are, not by the code points.
 */
#ifndef TOK_PAGES_H
#define TOK_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "classes.h"

#define TOK_PAGE 256u
#define TOK_PAGES (TOK_CODE_POINTS / TOK_PAGE)

/* Runs of equal value: first code point << bits | value; a run ends where the next begins. */
struct tok_runs {
	const uint32_t *run;
	uint32_t n, bits; /* at most 8 */
};

/* The same by code point. */
struct tok_spread {
	uint8_t *value;		  /* pages, of those in a row that lie in one run the first */
	uint32_t n;		  /* pages in `value` */
	uint16_t page[TOK_PAGES]; /* by code point / 256: which of them */
};

/* False if memory is short. value is for the caller to free. */
bool tok_spread_runs(struct tok_spread *s, struct tok_runs runs);

static inline uint8_t
tok_spread_value(const struct tok_spread *s, uint32_t cp)
{
	return s->value[(uint32_t)s->page[cp / TOK_PAGE] * TOK_PAGE + cp % TOK_PAGE];
}

/* Pages that differ, in the order in which they came. */
struct tok_page_set {
	uint8_t *page; /* the caller's, with room for all that come */
	size_t bytes;  /* of a page, a multiple of 32 */
	uint32_t n;
	uint64_t hash[TOK_PAGES];
};

/*
 * Place of a page in the set; it is put in if there is none like it. `page` may lie in the set's
 * memory, not before its end.
 */
uint16_t tok_page_put(struct tok_page_set *set, const void *page);

#endif
