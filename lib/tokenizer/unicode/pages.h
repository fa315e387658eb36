/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two-stage tables by code point: pages of 256, equal ones stored once. Set-up only: the time
 * depends on the number of runs, not of code points.
 */
#pragma once

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

/* The same values by code point. */
struct tok_spread {
	uint8_t *value;		  /* pages; one for consecutive pages within one run */
	uint32_t n;		  /* pages in `value` */
	uint16_t page[TOK_PAGES]; /* by code point / 256: index of the page */
};

/* The caller frees s->value. False: out of memory. */
bool tok_spread_runs(struct tok_spread *s, struct tok_runs runs);

static inline uint8_t
tok_spread_value(const struct tok_spread *s, uint32_t cp)
{
	return s->value[(uint32_t)s->page[cp / TOK_PAGE] * TOK_PAGE + cp % TOK_PAGE];
}

/* The distinct pages, in order of first occurrence. */
struct tok_page_set {
	uint8_t *page; /* owned by the caller; has room for all */
	size_t bytes;  /* size of a page, a multiple of 32 */
	uint32_t n;
	uint64_t hash[TOK_PAGES];
};

/*
 * Index of a page in the set; adds the page if there is no equal one. `page` may lie in the set's
 * memory, at or after its end.
 */
uint16_t tok_page_put(struct tok_page_set *set, const void *page);
