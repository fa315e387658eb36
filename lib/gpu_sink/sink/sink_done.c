/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot: handles the back area: done slots, released outputs, heartbeat. */
#include "sink_inside.h"

/*
 * The consumer did not see what was posted: payload or header were not visible yet, or the ticket
 * came with a predecessor's half-written header, which has another epoch.
 */
static bool
is_repeatable(enum tokg_status status)
{
	return status == TOKG_BADSUM || status == TOKG_STALE;
}

static bool
is_posted_again(const struct tokg_sink_piece *p, enum tokg_status status)
{
	return status != TOKG_OK && !p->second && (p->batch || is_repeatable(status));
}

/*
 * One slot is done, with any status. A slot that was not seen as posted, or a BATCH that failed, is
 * posted again, once; any other failure fails its text only. A TEXT may be the owner's to encode.
 */
static void
settle_slot(struct tokg_sink *s, struct tokg_sink_slot *sl, enum tokg_status status, uint64_t now)
{
	struct tokg_sink_piece *p = &s->piece[sl->piece & s->piece_mask];

	sl->state = TOKG_SLOT_FREE;
	s->n_out--;
	p->n_out--;
	s->counter[TOKG_C_DONE]++;
	s->news = true;
	if (s->done != NULL)
		s->done(s->owner, sl->hdr.t_post, now);
	if (__builtin_expect(p->generate != 0 && !is_posted_again(p, status), 0))
		tokg_sink_lane_settled(s, p->generate, status);
	if (__builtin_expect(status == TOKG_OK && !p->text, 1))
		return;
	s->counter[TOKG_C_BADSUM] += status == TOKG_BADSUM;
	if (is_posted_again(p, status)) {
		p->second = true;
		p->strict = is_repeatable(status);
		p->at = p->start;
		s->n_again++;
		return;
	}
	if (!p->text || (status != TOKG_OK && status != TOKG_CPU))
		tokg_sink_fail(s, sl->hdr.request, status);
	if (p->text)
		tokg_sink_text(s, p->start, status);
	if (p->text && status == TOKG_CPU)
		tokg_sink_void(s, p->start);
}

/* Checks all posted slots. False: an impossible done word. */
static bool
take_done(struct tokg_sink *s, uint64_t now)
{
	uint32_t i = s->oldest_slot;
	bool run = true;

	for (uint64_t n = s->oldest; n != s->posted; n++) {
		struct tokg_sink_slot *sl = &s->slot[i];

		if (sl->state == TOKG_SLOT_OUT) {
			const uint64_t done = s->t->done[i];

			if (done >> 8 == sl->hdr.ticket)
				settle_slot(s, sl, (enum tokg_status)(done & 0xff), now);
			else if (__builtin_expect(done >> 8 > sl->hdr.ticket, 0))
				return tokg_sink_break(s, TOKG_BREACH);
		}
		i = i + 1 == s->slots ? 0 : i + 1;
		run = run && sl->state == TOKG_SLOT_FREE;
		if (run) {
			s->oldest = n + 1;
			s->oldest_slot = i;
		}
	}
	return true;
}

static bool
take_released(struct tokg_sink *s, uint64_t released)
{
	if (__builtin_expect(released > s->posted, 0))
		return tokg_sink_break(s, TOKG_BREACH);
	if (released > s->released) {
		s->news = true;
		s->released = released;
		s->out_tail = s->out_end[(released - 1) & s->out_fifo_mask];
	}
	return true;
}

bool
tokg_sink_take_back(struct tokg_sink *s, uint64_t now)
{
	const struct tokg_back *b = s->t->back;

	s->n_reads = s->t->n_reads;
	s->reading = false;
	s->counter[TOKG_C_READS]++;
	if (b->epoch != s->t->epoch)
		return tokg_sink_break(s, TOKG_GRANT);
	if (!take_done(s, now) || !take_released(s, b->released))
		return false;
	if (s->reading_lanes && !tokg_sink_take_tokens(s))
		return false;
	/* Measured at the start of the read: a worker that slept must not take the agent for dead.
	 */
	if (b->heartbeat != s->heartbeat) {
		s->heartbeat = b->heartbeat;
		s->t_alive = s->t_read;
	} else if (s->t_read > s->t_alive && s->t_read - s->t_alive > s->dead_ticks) {
		return tokg_sink_break(s, TOKG_SILENT);
	}
	return true;
}
