/* SPDX-License-Identifier: BSD-3-Clause */
#include "encoder.h"

#include <stdlib.h>

#define ROOM_FIRST ((size_t)4096)

struct encoder *
encoder_create(const struct tok_vocab *v)
{
	struct encoder *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->cache = tok_cache_create(v, 0, NULL);
	if (e->cache != NULL && encoder_grow(e, ROOM_FIRST))
		return e;
	encoder_free(e);
	return NULL;
}

void
encoder_free(struct encoder *e)
{
	if (e == NULL)
		return;
	tok_cache_free(e->cache);
	free(e->ids);
	free(e);
}

bool
encoder_grow(struct encoder *e, size_t need)
{
	const size_t room = need > 2 * e->room ? need : 2 * e->room;
	uint32_t *ids;

	if (need > SIZE_MAX / 4 / sizeof(*ids))
		return false;
	ids = realloc(e->ids, room * sizeof(*ids));
	if (ids == NULL)
		return false;
	e->ids = ids;
	e->room = room;
	return true;
}

void
encoder_trim(struct encoder *e)
{
	uint32_t *ids;

	if (e->room <= ENCODER_ROOM_KEPT)
		return;
	ids = realloc(e->ids, ROOM_FIRST * sizeof(*ids));
	if (ids == NULL)
		return;
	e->ids = ids;
	e->room = ROOM_FIRST;
}
