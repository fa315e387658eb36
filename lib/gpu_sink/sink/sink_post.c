/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot: posting one slot: outputs, header, ticket. */
#include "ring/check.h"
#include "sink_inside.h"

/* Allocates outputs that do not wrap. False: not released yet. */
static bool
alloc_outputs(struct tokg_sink *s, uint64_t bytes, uint64_t *at)
{
	const uint64_t size = s->out_mask + 1;
	uint64_t pos = s->out_head;

	if ((pos & s->out_mask) + bytes > size)
		pos = (pos | s->out_mask) + 1;
	if (pos + bytes - s->out_tail > size || s->posted - s->released > s->out_fifo_mask)
		return false;
	*at = pos;
	return true;
}

static void
enter_slot(struct tokg_sink *s, const struct tokg_hdr *hdr, const struct tokg_sink_job *job,
	uint32_t piece)
{
	struct tokg_sink_slot *sl = &s->slot[s->next_slot];

	sl->hdr = *hdr;
	sl->payload = job->payload;
	sl->piece = piece;
	sl->state = TOKG_SLOT_OUT;
	s->out_head = hdr->out_off + job->out_bytes;
	s->out_end[s->posted & s->out_fifo_mask] = s->out_head;
	s->piece[piece & s->piece_mask].n_out++;
	s->posted++;
	s->next_slot = s->next_slot + 1 == s->slots ? 0 : s->next_slot + 1;
	s->n_out++;
	s->poll_posts++;
	s->counter[TOKG_C_SLOTS]++;
	s->counter[TOKG_C_BATCHES] += (hdr->flags & TOKG_BATCH) != 0;
	s->counter[TOKG_C_BYTES] += hdr->bytes;
}

int
tokg_sink_post(struct tokg_sink *s, const struct tokg_sink_job *job, uint32_t piece, uint32_t again,
	uint64_t now)
{
	const struct tokg_geometry *g = &s->t->geometry;
	const struct tokg_sink_slot *sl = &s->slot[s->next_slot];
	const uint8_t *payload = s->data + (job->payload & s->mask);
	const bool is_last = sl->hdr.ticket >= TOKG_TICKET_MAX;
	uint64_t out_off;
	struct tokg_hdr hdr;
	int rc;

	/* Before the last ticket wait for posted slots: they need not be posted again. */
	if (sl->state != TOKG_SLOT_FREE || __builtin_expect(is_last && s->n_out != 0, 0)) {
		s->no_slot = true;
		return 0;
	}
	if (__builtin_expect(is_last, 0)) {
		tokg_sink_break(s, TOKG_TICKETS);
		return 0;
	}
	if (!alloc_outputs(s, job->out_bytes, &out_off)) {
		s->no_output = true;
		return 0;
	}
	hdr = (struct tokg_hdr){
		.request = job->request,
		.kind = (uint16_t)g->kind,
		.vocab = job->vocab,
		.bytes = job->bytes,
		.tokens = job->tokens,
		.first = job->first,
		.epoch = s->t->epoch,
		.t_post = now,
		.out_off = out_off,
		.position0 = job->first,
		.flags = job->flags | again,
		.ticket = sl->hdr.ticket + 1,
	};
	if (g->flags & TOKG_CHECKED)
		hdr.check = tokg_check_of(&hdr, payload);
	rc = s->t->ops->post(s->t, s->next_slot, payload,
		(uint32_t)tokg_align(job->bytes, TOKG_LINE), &hdr,
		again != 0 ? TOKG_ORDER_STRICT : s->t->order);
	if (rc == 0)
		return 0;
	/* Below 0: it may be published; reconnecting finds out. */
	enter_slot(s, &hdr, job, piece);
	if (rc < 0)
		tokg_sink_break(s, TOKG_CONNECTION);
	return rc;
}

int
tokg_sink_post_lost(struct tokg_sink *s)
{
	uint32_t i = s->oldest_slot;

	for (uint64_t n = s->oldest; n != s->posted && s->n_lost != 0; n++) {
		struct tokg_sink_slot *sl = &s->slot[i];
		int rc;

		i = i + 1 == s->slots ? 0 : i + 1;
		if (sl->state != TOKG_SLOT_LOST)
			continue;
		if (s->poll_posts == TOKG_POLL_POSTS)
			return 0;
		rc = s->t->ops->post(s->t, (uint32_t)(sl - s->slot),
			s->data + (sl->payload & s->mask),
			(uint32_t)tokg_align(sl->hdr.bytes, TOKG_LINE), &sl->hdr,
			sl->hdr.flags & TOKG_STRICT ? TOKG_ORDER_STRICT : s->t->order);
		if (rc == 0)
			return 0;
		sl->state = TOKG_SLOT_OUT;
		s->n_lost--;
		s->poll_posts++;
		s->counter[TOKG_C_SLOTS]++;
		s->counter[TOKG_C_AGAIN]++;
		if (rc < 0) {
			tokg_sink_break(s, TOKG_CONNECTION);
			return rc;
		}
	}
	return 1;
}
