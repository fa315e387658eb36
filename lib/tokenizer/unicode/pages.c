/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "pages.h"

static uint32_t
start_of(const struct tok_runs *r, uint32_t i)
{
	return i < r->n ? r->run[i] >> r->bits : TOK_CODE_POINTS;
}

/*
 * Fill the page from code point `first` on; run i contains `first`. Returns the run of the next
 * page.
 */
static uint32_t
fill_page(const struct tok_runs *r, uint32_t i, uint32_t first, uint8_t *value)
{
	const uint32_t end = first + TOK_PAGE;
	uint32_t from = first;

	for (;; i++) {
		const uint32_t next = start_of(r, i + 1), to = next < end ? next : end;

		memset(value + from - first, (int)(r->run[i] & ((1u << r->bits) - 1)), to - from);
		if (next >= end)
			return i + (next == end);
		from = next;
	}
}

/* A page without the start of a run equals the one before if that has none either. */
static bool
as_before(const uint8_t *begins, uint32_t page)
{
	return page > 0 && !begins[page] && !begins[page - 1];
}

bool
tok_spread_runs(struct tok_spread *s, struct tok_runs runs)
{
	uint8_t begins[TOK_PAGES] = {0};
	uint32_t pages = 0, i = 0;

	for (uint32_t k = 0; k < runs.n; k++)
		begins[start_of(&runs, k) / TOK_PAGE] = 1;
	for (uint32_t p = 0; p < TOK_PAGES; p++)
		pages += !as_before(begins, p);
	s->n = 0;
	s->value = malloc((size_t)pages * TOK_PAGE);
	if (s->value == NULL)
		return false;
	for (uint32_t p = 0; p < TOK_PAGES; p++) {
		if (as_before(begins, p)) {
			s->page[p] = s->page[p - 1];
			i += start_of(&runs, i + 1) == (p + 1) * TOK_PAGE;
			continue;
		}
		i = fill_page(&runs, i, p * TOK_PAGE, s->value + s->n * TOK_PAGE);
		s->page[p] = (uint16_t)s->n++;
	}
	return true;
}

/* A multiplicative hash in independent lanes. */
static uint64_t
hash_page(const uint8_t *page, size_t bytes)
{
	uint64_t h[4] = {0, 1, 2, 3}, word;

	for (size_t at = 0; at < bytes; at += sizeof(h)) {
		for (size_t lane = 0; lane < 4; lane++) {
			memcpy(&word, page + at + lane * sizeof(word), sizeof(word));
			h[lane] = (h[lane] ^ word) * 0x9e3779b97f4a7c15ull;
			h[lane] ^= h[lane] >> 32;
		}
	}
	return ((h[0] * 3 + h[1]) * 3 + h[2]) * 3 + h[3];
}

uint16_t
tok_page_put(struct tok_page_set *set, const void *page)
{
	const uint64_t hash = hash_page(page, set->bytes);

	for (uint32_t i = 0; i < set->n; i++) {
		if (set->hash[i] == hash &&
			memcmp(set->page + i * set->bytes, page, set->bytes) == 0)
			return (uint16_t)i;
	}
	memmove(set->page + set->n * set->bytes, page, set->bytes);
	set->hash[set->n] = hash;
	return (uint16_t)set->n++;
}
