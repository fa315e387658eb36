/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids arrive in any order and are written directly to their place in the caller's memory. Ids after
 * the first gap are remembered as ranges. If there are too many ranges, one is forgotten, and its
 * ids are requested again later.
 */
#include <string.h>

#include <crc32c.h>
#include "engine.h"

/*
 * Add [first, end) to the ranges, which stay sorted and disjoint. False: no room, or nothing new.
 */
static bool
remember(struct slot *s, uint32_t first, uint32_t end)
{
	uint32_t from = 0, to;

	while (from < s->n_early && s->early[from].end < first)
		from++;
	if (from < s->n_early && s->early[from].first <= first && s->early[from].end >= end)
		return false;
	for (to = from; to < s->n_early && s->early[to].first <= end; to++) {
		if (s->early[to].first < first)
			first = s->early[to].first;
		if (s->early[to].end > end)
			end = s->early[to].end;
	}
	if (from == to && s->n_early == EARLY_MAX)
		return false;
	/* Merge ranges [from, to) into one. */
	memmove(&s->early[from + 1], &s->early[to], (s->n_early - to) * sizeof(s->early[0]));
	s->n_early = (uint8_t)(s->n_early - (to - from) + 1);
	s->early[from] = (struct range){first, end};
	return true;
}

/* Ids below `end` are complete; add ranges that are now adjacent. */
static uint32_t
reach(struct slot *s, uint32_t end)
{
	uint8_t n = 0;

	for (; n < s->n_early && s->early[n].first <= end; n++) {
		if (s->early[n].end > end)
			end = s->early[n].end;
	}
	s->n_early = (uint8_t)(s->n_early - n);
	memmove(&s->early[0], &s->early[n], s->n_early * sizeof(s->early[0]));
	return end;
}

/* Store the reply's ids [from, end). */
static void
store(struct slot *s, const struct tokd_rep *rep, uint32_t from, uint32_t end, const void *ids)
{
	const size_t each = id_bytes(s->r);
	uint32_t skip = from - rep->first, n = end - from;
	uint32_t *to;

	if (!(rep->flags & TOKD_F_SHORT)) {
		memcpy(s->r->out + each * (from - s->r->base), (const uint8_t *)ids + each * skip,
			each * n);
		return;
	}
	to = s->r->ids + from;
	for (uint32_t i = 0; i < n; i++) {
		uint16_t id; /* not aligned */

		memcpy(&id, (const uint8_t *)ids + (skip + i) * sizeof(id), sizeof(id));
		to[i] = id;
	}
}

bool
engine_ids_take(struct slot *s, const struct tokd_rep *rep, const void *ids)
{
	const size_t each = id_bytes(s->r);
	const uint32_t first = rep->first;
	uint32_t end = first + rep->count;

	s->unacked++;
	if (generates(s->r) && end > room_end(s->r))
		end = (uint32_t)room_end(s->r); /* the rest comes again when it is asked for */
	if (end <= s->have || end <= first)
		return false;
	if (first > s->have) {
		if (!remember(s, first, end))
			return false;
		store(s, rep, first, end, ids);
		return true;
	}
	store(s, rep, s->have, end, ids);
	end = reach(s, end);
	s->ids_crc = tokd_crc32c(
		s->ids_crc, s->r->out + each * (s->have - s->r->base), each * (end - s->have));
	s->have = end;
	return true;
}
