/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of the sink: its arrays, and the last tickets. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <monotonic.h>
#include "ring/geometry.h"
#include "sink_inside.h"
#include "transport/transport_inside.h"

#define FIRST_READ_MS 1000

static bool
read_back_once(struct tokg_transport *t, struct tokg_error *err)
{
	const uint64_t before = t->n_reads, end = monotonic_ms() + FIRST_READ_MS;
	bool begun = false;

	while (t->n_reads == before) {
		int rc = begun ? 1 : t->ops->read_back(t);

		begun = rc > 0;
		if (rc < 0 || t->ops->poll(t) < 0)
			return tokg_wrong(err, "GPU ring: connection lost during set-up");
		if (t->n_reads == before && monotonic_ms() > end)
			return tokg_wrong(err, "GPU ring: no answer to the first read within %d ms",
				FIRST_READ_MS);
		if (t->n_reads == before)
			usleep(50);
	}
	if (t->back->epoch != t->epoch || t->back->released != 0)
		return tokg_wrong(err,
			"GPU ring: producer %" PRIu32 " has epoch %" PRIu32 " with %" PRIu64
			" slots released: must be the granted epoch %" PRIu32 " with none",
			t->producer, t->back->epoch, t->back->released, t->epoch);
	for (uint32_t i = 0; i < t->geometry.slots; i++) {
		if (t->done[i] >> 8 >= TOKG_TICKET_MAX)
			return tokg_wrong(err,
				"GPU ring: slot %" PRIu32 " of producer %" PRIu32
				" has ticket %" PRIu64 ", the limit is %llu: restart tokd-gpu",
				i, t->producer, t->done[i] >> 8,
				(unsigned long long)TOKG_TICKET_MAX);
	}
	return true;
}

static uint32_t
power_of_2_from(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* All arrays, in one mapping. */
static bool
make_arrays(struct tokg_sink *s, const struct tokg_geometry *g, struct tokg_error *err)
{
	/* Twice the slots: pieces after one that is posted again can be done. */
	const uint32_t n_pieces = power_of_2_from(2 * g->slots);
	const uint64_t n_out = g->out_bytes / TOKG_OUT_ALIGN < TOKG_UNRELEASED_MAX
				       ? g->out_bytes / TOKG_OUT_ALIGN
				       : TOKG_UNRELEASED_MAX;
	const size_t slot_bytes = tokg_align(g->slots * sizeof(*s->slot), TOKG_LINE);
	const size_t piece_bytes = tokg_align(n_pieces * sizeof(*s->piece), TOKG_LINE);
	const size_t out_bytes = tokg_align(n_out * sizeof(*s->out_end), TOKG_LINE);
	const size_t bytes = tokg_align(
		slot_bytes + piece_bytes + out_bytes + g->slots * sizeof(*s->tickets), TOKG_PAGE);
	uint8_t *p = tokg_own_memory(bytes, s->node);

	if (p == NULL)
		return tokg_wrong(err,
			"GPU sink: cannot allocate %zu bytes for %" PRIu32 " slots: %s", bytes,
			g->slots, strerror(errno));
	if (s->own != NULL)
		munmap(s->own, s->own_bytes);
	s->own = p;
	s->own_bytes = bytes;
	s->slot = (struct tokg_sink_slot *)p;
	s->piece = (struct tokg_sink_piece *)(p + slot_bytes);
	s->out_end = (uint64_t *)(p + slot_bytes + piece_bytes);
	s->tickets = (uint64_t *)(p + slot_bytes + piece_bytes + out_bytes);
	s->piece_mask = n_pieces - 1;
	s->out_fifo_mask = n_out - 1;
	return true;
}

bool
tokg_sink_attach(struct tokg_sink *s, struct tokg_transport *t, struct tokg_error *err)
{
	const struct tokg_geometry *g = &t->geometry;

	if (!read_back_once(t, err) || !make_arrays(s, g, err))
		return false;
	s->t = t;
	s->slot_bytes = g->slot_bytes;
	s->row_bytes = g->row_bytes;
	s->text_most = tokg_text_most(g);
	s->slots = g->slots;
	s->out_mask = g->out_bytes - 1;
	for (uint32_t i = 0; i < g->slots; i++)
		s->slot[i].hdr.ticket = t->done[i] >> 8;
	s->skip_below = t->shed_below;
	s->next = atomic_load_explicit(&s->cursor, memory_order_relaxed);
	s->part = 0;
	s->batch = (struct tokg_sink_batch){0};
	s->piece_head = s->piece_tail = 0;
	s->next_slot = s->oldest_slot = 0;
	s->posted = s->oldest = 0;
	s->n_out = s->n_lost = s->n_again = 0;
	s->out_head = s->out_tail = s->released = 0;
	s->n_reads = t->n_reads;
	s->heartbeat = t->back->heartbeat;
	s->reading = s->watching = s->resumed = false;
	s->broken = TOKG_ATTACHED;
	return true;
}

struct tokg_sink *
tokg_sink_create(const struct tokg_sink_config *c, struct tokg_error *err)
{
	struct tokg_sink *s;

	if (c->n_vocabs == 0 || c->n_vocabs > TOKG_VOCABS_MAX) {
		tokg_wrong(err, "GPU sink: %" PRIu32 " vocabularies, must be 1 to %d", c->n_vocabs,
			TOKG_VOCABS_MAX);
		return NULL;
	}
	s = tokg_own_memory(tokg_align(sizeof(*s), TOKG_PAGE), c->node);
	if (s == NULL) {
		tokg_wrong(err, "GPU sink: cannot allocate it: %s", strerror(errno));
		return NULL;
	}
	s->data = c->data;
	s->mask = c->mask;
	s->batch_ticks = c->batch_ticks;
	s->read_ticks = s->interval = c->read_ticks;
	s->read_ticks_lanes = c->read_ticks_lanes;
	s->read_ticks_most = c->read_ticks_most;
	s->dead_ticks = c->dead_ticks;
	s->n_vocabs = c->n_vocabs;
	memcpy(s->vocab, c->vocab, c->n_vocabs * sizeof(*s->vocab));
	s->failed = c->failed;
	s->done = c->done;
	s->text = c->text;
	s->token = c->token;
	s->ended = c->ended;
	s->owner = c->owner;
	s->node = c->node;
	s->wipe = c->wipe;
	s->broken = TOKG_NEVER;
	atomic_init(&s->cursor, c->start);
	atomic_init(&s->shed_below, 0);
	s->finished = c->start_records;
	if (!tokg_sink_attach(s, c->transport, err)) {
		tokg_sink_free(s);
		return NULL;
	}
	s->n_lanes = s->t->geometry.lanes; /* lanes are taken before the first poll, too */
	return s;
}

void
tokg_sink_free(struct tokg_sink *s)
{
	if (s == NULL)
		return;
	if (s->own != NULL)
		munmap(s->own, s->own_bytes);
	munmap(s, tokg_align(sizeof(*s), TOKG_PAGE));
}
