/* SPDX-License-Identifier: BSD-3-Clause */
#include "encoder.h"

#include <stdlib.h>

#include "tables/mem.h"

#define ROOM_FIRST ((size_t)4096)

struct encoder *
encoder_create(const struct tok_vocab *v)
{
	struct encoder *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->cache = tok_cache_create(v, 0, NULL);
	e->utf8 = utf8_choose(tok_vocab_info(v).isa);
	if (e->cache != NULL && encoder_grow(e, ROOM_FIRST))
		return e;
	encoder_free(e);
	return NULL;
}

static void
text_room_free(struct encoder *e)
{
	if (e->text != NULL)
		tok_mem_default.free(NULL, e->text, e->text_room);
	e->text = NULL;
	e->text_room = 0;
}

void
encoder_free(struct encoder *e)
{
	if (e == NULL)
		return;
	tok_cache_free(e->cache);
	free(e->ids);
	text_room_free(e);
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

enum tok_status
encoder_utf8(struct encoder *e, struct encoder_text *text)
{
	size_t room, n;

	if (text->width == 0)
		return TOK_OK;
	if (text->n > SIZE_MAX / 8)
		return TOK_MORE;
	room = utf8_bound(text->n, text->width);
	if (room > e->text_room) {
		text_room_free(e);
		e->text = tok_mem_default.alloc(NULL, room, 64);
		if (e->text == NULL)
			return TOK_MORE;
		e->text_room = room;
	}
	n = e->utf8(e->text, text->p, text->n, text->width);
	if (n == SIZE_MAX)
		return TOK_BAD;
	*text = (struct encoder_text){.p = e->text, .n = n};
	return TOK_OK;
}

void
encoder_trim(struct encoder *e)
{
	uint32_t *ids;

	if (e->text_room > ENCODER_TEXT_KEPT)
		text_room_free(e);
	if (e->room <= ENCODER_ROOM_KEPT)
		return;
	ids = realloc(e->ids, ROOM_FIRST * sizeof(*ids));
	if (ids == NULL)
		return;
	e->ids = ids;
	e->room = ROOM_FIRST;
}
