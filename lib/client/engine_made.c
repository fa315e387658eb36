/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GENERATE: an answer is a sequence of items, cut into replies anywhere. Its bytes pass through the
 * caller's `out`: out[0] is byte `base` of the answer, and what was taken makes room. No item has
 * more bytes than half of `out`, so that one that begins in its first half always fits.
 */
#include <string.h>

#include "engine.h"

#define ID_LIMIT (UINT32_C(1) << 24) /* no vocabulary has more ids */

static_assert(TOKD_GENERATE_ROOM == 2 * (sizeof(struct tokd_made) + UINT16_MAX),
	"the longest item has room");

static bool
is_item(const struct tokd_request *r, const struct tokd_made *made)
{
	if (made->end == TOKD_MADE_MORE)
		return made->id < ID_LIMIT && r->made < r->limit;
	return made->id == TOKD_MADE_END && made->end <= TOKD_MADE_CANCELLED;
}

enum tokd_status
engine_made_check(struct slot *s)
{
	struct tokd_request *r = s->r;

	while (!r->ended && s->have - s->whole >= sizeof(struct tokd_made)) {
		struct tokd_made made;
		uint32_t len;

		memcpy(&made, r->out + (s->whole - r->base), sizeof(made));
		len = (uint32_t)sizeof(made) + made.text;
		if (!is_item(r, &made))
			return TOKD_E_ANSWER;
		if (len > r->max_ids / 2)
			return TOKD_E_ROOM;
		if (s->have - s->whole < len)
			break;
		s->whole += len;
		r->ended = made.end != TOKD_MADE_MORE;
		r->made += !r->ended;
	}
	/* Nothing follows the end, and no answer is complete without it. */
	if (r->ended ? r->total > s->whole : s->final && s->have == s->final_total)
		return TOKD_E_ANSWER;
	return TOKD_PENDING;
}

/* What was taken makes room for what is to come. */
static void
make_room(struct tokd_engine *e, struct slot *s)
{
	struct tokd_request *r = s->r;
	const uint32_t end = s->n_early > 0 ? s->early[s->n_early - 1].end : s->have;

	memmove(r->out, r->out + (r->taken - r->base), end - r->taken);
	r->base = r->taken;
	if (engine_missing_end(s) != 0)
		engine_queue_poll(e, s, POLL_ASK);
}

bool
tokd_engine_made(struct tokd_engine *e, struct tokd_request *r, struct tokd_made *made,
	const char **text, uint64_t now)
{
	struct slot *s = r->status == TOKD_PENDING ? &e->slot[r->slot] : NULL;
	const char *item;

	if (s != NULL && r->taken - r->base > r->max_ids / 2)
		make_room(e, s);
	if (r->taken == r->n_ids)
		return false;
	item = r->out + (r->taken - r->base);
	memcpy(made, item, sizeof(*made));
	*text = item + sizeof(*made);
	r->taken += (uint32_t)sizeof(*made) + made->text;
	if (s == NULL)
		return true;
	s->took = true;
	if (++s->untold >= ACK_EVERY || s->unacked >= ACK_EVERY || now - s->told_at >= ACK_AFTER)
		engine_queue_poll(e, s, POLL_ACK);
	/* It was not asked for often while there was something to take. */
	if (r->taken == s->whole && s->backed_off > 0 && engine_missing_end(s) != 0)
		engine_queue_poll(e, s, POLL_ASK);
	return true;
}
