/* SPDX-License-Identifier: BSD-3-Clause */
#include "postings.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

bool
tokg_postings_create(struct tokg_postings *p, const struct tokg_geometry *g)
{
	memset(p, 0, sizeof(*p));
	p->slots = g->slots;
	/* An entry has at least TOKG_OUT_ALIGN bytes of outputs, or is a failed slot. */
	p->room = (uint32_t)(g->out_bytes / TOKG_OUT_ALIGN) + g->slots;
	p->out_bytes = g->out_bytes;
	p->row_bytes = g->row_bytes;
	p->base = calloc(p->slots, sizeof(*p->base));
	p->pending = calloc(p->slots, sizeof(*p->pending));
	p->node = calloc(p->room, sizeof(*p->node));
	p->given = calloc(p->room, sizeof(*p->given));
	if (p->base == NULL || p->pending == NULL || p->node == NULL || p->given == NULL) {
		tokg_postings_free(p);
		return false;
	}
	tokg_postings_begin(p, p->base);
	return true;
}

void
tokg_postings_free(struct tokg_postings *p)
{
	free(p->base);
	free(p->pending);
	free(p->node);
	free(p->given);
	memset(p, 0, sizeof(*p));
}

void
tokg_postings_begin(struct tokg_postings *p, const uint64_t *base)
{
	if (base != p->base)
		memcpy(p->base, base, p->slots * sizeof(*base));
	for (uint32_t i = 0; i < p->slots; i++)
		p->pending[i] = (struct tokg_pending){.first = NONE, .last = NONE};
	for (uint32_t i = 0; i < p->room; i++)
		p->node[i].next = i + 1 < p->room ? i + 1 : NONE;
	p->unused = 0;
	p->ready_first = p->ready_last = NONE;
	p->next = p->final = p->filled = p->released = 0;
	p->out_head = p->out_tail = 0;
}

static uint32_t
drop(struct tokg_postings *p, struct tokg_pending *q)
{
	const uint32_t n = q->got;

	if (q->first != NONE) {
		p->node[q->last].next = p->unused;
		p->unused = q->first;
	}
	*q = (struct tokg_pending){.first = NONE, .last = NONE};
	return n;
}

static enum tokg_take
twin(struct tokg_postings *p)
{
	p->twins++;
	return TOKG_TWIN;
}

/* Sorted by part; most entries come in this order. */
static enum tokg_take
insert(struct tokg_postings *p, struct tokg_pending *q, const struct tokg_out_entry *e)
{
	const uint32_t i = p->unused;
	uint32_t before = q->last;

	if (i == NONE)
		return TOKG_IMPOSSIBLE;
	if (before != NONE && p->node[before].entry.part >= e->part) {
		uint32_t at = q->first;

		before = NONE;
		while (at != NONE && p->node[at].entry.part < e->part) {
			before = at;
			at = p->node[at].next;
		}
		if (at != NONE && p->node[at].entry.part == e->part)
			return twin(p);
	}
	p->unused = p->node[i].next;
	p->node[i].entry = *e;
	p->node[i].ends = false;
	if (before == NONE) {
		p->node[i].next = q->first;
		q->first = i;
	} else {
		p->node[i].next = p->node[before].next;
		p->node[before].next = i;
	}
	if (before == q->last)
		q->last = i;
	q->got++;
	return TOKG_TAKEN;
}

/*
 * If one record of a BATCH failed, all are skipped: the producer posts all of them again, and
 * subscribers would get the valid ones twice.
 */
static void
mark_again(struct tokg_postings *p, const struct tokg_pending *q)
{
	bool failed = false;

	for (uint32_t i = q->first; i != NONE; i = p->node[i].next)
		failed = failed || p->node[i].entry.status != TOKG_OK;
	for (uint32_t i = q->first; i != NONE; i = p->node[i].next)
		p->node[i].again = failed && (p->node[i].entry.flags & TOKG_BATCH);
}

/* A failure is final when `done` has it: until then a repeat may succeed. */
static bool
is_final(const struct tokg_postings *p, const struct tokg_pending *q, const uint64_t *done)
{
	const uint32_t slot = p->next % p->slots;

	return q->worst == TOKG_OK || p->next < p->final ||
	       (done != NULL &&
		       done[slot] == TOKG_DONE(p->base[slot] + p->next / p->slots + 1, q->worst));
}

/* Moves complete postings, in order, to ready. `done`: or NULL. */
static void
move_on(struct tokg_postings *p, const uint64_t *done)
{
	for (;;) {
		struct tokg_pending *q = &p->pending[p->next % p->slots];

		if (q->got == 0 || q->got < q->parts || !is_final(p, q, done))
			return;
		p->node[q->last].ends = true;
		p->node[q->last].next = NONE;
		mark_again(p, q);
		if (p->ready_last == NONE)
			p->ready_first = q->first;
		else
			p->node[p->ready_last].next = q->first;
		p->ready_last = q->last;
		*q = (struct tokg_pending){.first = NONE, .last = NONE};
		p->next++;
	}
}

enum tokg_take
tokg_postings_take(struct tokg_postings *p, const struct tokg_out_entry *e)
{
	struct tokg_pending *q = &p->pending[e->slot];
	enum tokg_take taken;
	uint64_t n;

	if (e->ticket <= p->base[e->slot])
		return twin(p); /* of an earlier epoch */
	n = (e->ticket - p->base[e->slot] - 1) * p->slots + e->slot;
	if (n < p->next)
		return twin(p);
	if (n >= p->next + p->slots && n < p->next + 2 * (uint64_t)p->slots) {
		/* The producer posted it after the slot's last use was done. */
		if (p->final < n - p->slots + 1)
			p->final = n - p->slots + 1;
		move_on(p, NULL);
	}
	if (n >= p->next + p->slots || e->parts == 0 || e->part >= e->parts)
		return TOKG_IMPOSSIBLE;
	if (q->got > 0 && e->incarnation != q->incarnation) {
		/* An incarnation died after it claimed the slot; the later one reports all parts.
		 */
		if (e->incarnation < q->incarnation || (q->got == q->parts && q->worst == TOKG_OK))
			return twin(p);
		p->twins += drop(p, q);
	}
	if (q->got == 0) {
		q->incarnation = e->incarnation;
		q->parts = e->parts;
	}
	if (e->parts != q->parts)
		return TOKG_IMPOSSIBLE;
	taken = insert(p, q, e);
	if (taken == TOKG_TAKEN && q->worst < e->status)
		q->worst = e->status;
	move_on(p, NULL);
	return taken;
}

bool
tokg_postings_waits(const struct tokg_postings *p)
{
	const struct tokg_pending *q = &p->pending[p->next % p->slots];

	return q->got > 0 && q->got == q->parts;
}

void
tokg_postings_settle(struct tokg_postings *p, const uint64_t *done)
{
	if (done == NULL)
		p->final = UINT64_MAX;
	move_on(p, done);
}

const struct tokg_out_entry *
tokg_postings_ready(const struct tokg_postings *p, bool *again)
{
	/* The limit of unreleased postings: a valid producer has no more. */
	if (p->ready_first == NONE || p->filled - p->released == p->room)
		return NULL;
	*again = p->node[p->ready_first].again;
	return &p->node[p->ready_first].entry;
}

/*
 * Updates the end of the used outputs. Headers of failed slots are not trusted: such a slot may
 * have skipped a quarter of the outputs and used another, until the next valid one has its
 * position. Rows of a text take some of the outputs reserved for its bytes, at most a quarter.
 * Never more than all outputs.
 */
static void
count_outputs(struct tokg_postings *p, const struct tokg_out_entry *e)
{
	const uint64_t most = p->out_tail + p->out_bytes;
	uint64_t end = p->out_head + p->out_bytes / 2;

	if (e->status == TOKG_OK || e->status == TOKG_BADID || e->status == TOKG_BADPOS) {
		end = e->out_off + (e->flags & TOKG_TEXT ? p->out_bytes / 4
							 : tokg_out_bytes(e->tokens, p->row_bytes));
		for (uint64_t n = p->filled; n > p->released; n--) {
			struct tokg_given *g = &p->given[(n - 1) % p->room];

			if (g->out_end <= e->out_off)
				break;
			g->out_end = e->out_off;
		}
		if (p->out_tail > e->out_off)
			p->out_tail = e->out_off;
	}
	p->out_head = end < most ? end : most;
}

void
tokg_postings_give(struct tokg_postings *p, uint64_t end)
{
	const uint32_t i = p->ready_first;

	count_outputs(p, &p->node[i].entry);
	p->ready_first = p->node[i].next;
	if (p->ready_first == NONE)
		p->ready_last = NONE;
	if (p->node[i].ends) {
		p->given[p->filled % p->room] = (struct tokg_given){end, p->out_head};
		p->filled++;
	}
	p->node[i].next = p->unused;
	p->unused = i;
}

static bool
is_done(const struct tokg_postings *p, uint64_t posting, const uint64_t *done)
{
	const uint32_t slot = posting % p->slots;

	return done[slot] >> 8 >= p->base[slot] + posting / p->slots + 1;
}

uint64_t
tokg_postings_release(struct tokg_postings *p, uint64_t passed, const uint64_t *done)
{
	while (p->released < p->filled && p->given[p->released % p->room].end <= passed &&
		is_done(p, p->released, done)) {
		p->out_tail = p->given[p->released % p->room].out_end;
		p->released++;
	}
	return p->released;
}

uint64_t
tokg_postings_oldest(const struct tokg_postings *p)
{
	return p->released < p->filled ? p->given[p->released % p->room].end : UINT64_MAX;
}

bool
tokg_postings_full(const struct tokg_postings *p)
{
	const uint64_t most = p->room < TOKG_UNRELEASED_MAX ? p->room : TOKG_UNRELEASED_MAX;

	/* A slot takes at most a quarter, and may skip as much before the wrap. */
	return p->out_head - p->out_tail > p->out_bytes / 2 || p->filled - p->released > most / 2;
}

uint32_t
tokg_postings_drop_pending(struct tokg_postings *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->slots; i++)
		n += drop(p, &p->pending[i]);
	return n;
}

bool
tokg_postings_idle(const struct tokg_postings *p)
{
	for (uint32_t i = 0; i < p->slots; i++) {
		if (p->pending[i].got != 0)
			return false;
	}
	return p->ready_first == NONE && p->released == p->filled;
}
