/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk along a BATCH's records beside its definition: one record after the other. */
#include <stdio.h>

#include "block.h"
#include "kernels.h"
#include "slot.cuh"

namespace
{

#define ROWS_OF_JOB 8

struct walking {
	uint32_t n, bytes;
	tokg_consumer c;
	tokg_hand hand;
};

void
walk_thread(uint32_t tid, void *arg)
{
	walking *const k = (walking *)arg;
	tokg_block b = fibers_block(tid, k->n);

	tokg_walk_batch(&k->c, &b, &k->hand, 0, k->bytes);
}

/* The definition. Returns false at a contradictory record. */
bool
next_record(const tokg_consumer *c, const uint8_t *payload, uint32_t bytes, tokg_walk *w,
	tokg_part *parts)
{
	tokd_rec r;

	memcpy(&r, payload + w->off, sizeof(r));
	if (r.bytes < sizeof(r) || r.bytes % TOKD_RING_ALIGN != 0 || r.bytes > bytes - w->off)
		return false;
	if (r.kind == TOKD_REC_TOKENS) {
		tokg_part part = {};

		if (r.count > (r.bytes - sizeof(r)) / 4 ||
			((r.flags & TOKD_REC_ABORT) && r.count > 0))
			return false;
		part.request = r.serial;
		part.ids = w->off + (uint32_t)sizeof(r);
		part.first = part.position0 = r.first;
		part.tokens = r.count;
		part.flags = TOKG_BATCH | (r.flags & (TOKD_REC_FIRST | TOKD_REC_LAST));
		if (r.flags & TOKD_REC_ABORT)
			part.flags |= TOKG_ABORT;
		tokg_walk_add(c, w, parts, part);
	} else if (r.kind != TOKD_REC_PAD && r.kind != TOKD_REC_TEXT) {
		return false;
	}
	w->off += r.bytes;
	return true;
}

bool
is_equal(const tokg_part *a, const tokg_part *b)
{
	return a->request == b->request && a->out == b->out && a->ids == b->ids &&
	       a->first == b->first && a->position0 == b->position0 && a->tokens == b->tokens &&
	       a->job0 == b->job0 && a->flags == b->flags;
}

} // namespace

int
kernel_walk(
	const struct fibers_how *how, uint8_t *payload, uint32_t bytes, char report[FIBERS_TEXT])
{
	static tokg_part found[KERNEL_WALK_BYTES / TOKD_RING_ALIGN],
		expected[sizeof(found) / sizeof(*found)];
	static walking k;
	tokg_walk w = {};

	k = {};
	k.n = how->n;
	k.bytes = bytes;
	k.c.g.slot_bytes = KERNEL_WALK_BYTES;
	k.c.g.row_bytes = 256;
	k.c.rows = ROWS_OF_JOB;
	k.c.copies = payload;
	k.c.parts = found;
	memset(&k.hand, 0xa5, sizeof(k.hand)); /* nothing may depend on what it was */
	if (!fibers_run(how, walk_thread, &k, report))
		return -1;
	while (w.off < bytes && !w.bad)
		w.bad = !next_record(&k.c, payload, bytes, &w, expected);
	if (w.bad != k.hand.walk.bad)
		return snprintf(
			       report, FIBERS_TEXT, "bad: %d, expected %d", k.hand.walk.bad, w.bad),
		       -1;
	if (w.bad)
		return 0;
	if (k.hand.walk.n != w.n || k.hand.walk.tokens != w.tokens || k.hand.walk.jobs != w.jobs ||
		k.hand.walk.out != w.out)
		return snprintf(
			       report, FIBERS_TEXT, "%u requests, expected %u", k.hand.walk.n, w.n),
		       -1;
	for (uint32_t i = 0; i < w.n; i++)
		if (!is_equal(&found[i], &expected[i]))
			return snprintf(report, FIBERS_TEXT, "request %u differs", i), -1;
	return (int)w.n;
}
