/* SPDX-License-Identifier: BSD-3-Clause */
#include "encoder.h"

#include <stdlib.h>

#include "tables/mem.h"

#define ROOM_FIRST ((size_t)4096)
#define PART_BYTES ((size_t)128 << 10) /* of a text, between looks for signals */

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
encoder_utf8(struct encoder *e, struct encoder_text *text, struct signals *signals)
{
	const char *p = text->p;
	size_t room, n = 0;

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
	for (size_t left = text->n; left > 0;) {
		const size_t part = left < PART_BYTES ? left : PART_BYTES;
		const size_t wrote = e->utf8(e->text + n, p, part, text->width);

		if (wrote == SIZE_MAX)
			return TOK_BAD;
		n += wrote;
		p += part * text->width;
		left -= part;
		if (left > 0 && signals_raised(signals))
			return TOK_BAD;
	}
	*text = (struct encoder_text){.p = e->text, .n = n};
	return TOK_OK;
}

/* Parts need what a stream may hold back, beside the room for the whole. */
static size_t
part_room(size_t n)
{
	return n > PART_BYTES ? TOK_STREAM_HELD_MAX : 0;
}

size_t
encoder_bound(const struct tok_vocab *v, size_t n, uint32_t flags)
{
	return tok_encode_bound(v, n, flags) + part_room(n);
}

size_t
encoder_feed_bound(const struct tok_stream *s, size_t n)
{
	return tok_stream_bound(s, n) + part_room(n);
}

struct tok_result
encoder_feed(struct tok_stream *s, const struct encoder_text *text, bool last, uint32_t *ids,
	size_t room, struct signals *signals)
{
	struct tok_result all = {.status = TOK_OK}, r;

	for (;;) {
		const uint8_t *const p = (const uint8_t *)text->p + all.consumed;
		const size_t left = text->n - all.consumed;
		const size_t n = left < PART_BYTES ? left : PART_BYTES;

		r = tok_stream_feed(
			s, p, n, last && n == left, ids + all.produced, room - all.produced);
		all.status = r.status;
		all.error = r.error;
		all.consumed += r.consumed;
		if (r.begun <= all.consumed) /* else in an earlier text */
			all.consumed -= r.begun;
		all.produced += r.produced;
		if (r.status != TOK_OK || n == left)
			return all;
		if (signals_raised(signals))
			return (struct tok_result){.status = TOK_BAD};
	}
}

/* Some texts are too much for a stream, whose memory is fixed: those are encoded in one part. */
struct tok_result
encoder_encode(struct encoder *e, const struct tok_vocab *v, const struct encoder_text *text,
	uint32_t flags, uint32_t *ids, size_t room, struct signals *signals)
{
	struct tok_stream s;
	struct tok_result r;

	if (text->n > PART_BYTES) {
		tok_stream_init(&s, v, e->cache, flags);
		r = encoder_feed(&s, text, true, ids, room, signals);
		if (r.status == TOK_OK || r.error == TOK_ERROR_NONE || r.error == TOK_ERROR_UTF8)
			return r;
	}
	return tok_encode(v, e->cache, text->p, text->n, flags, ids, room);
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
