/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent, and the subscribers of what it hands out. */
#include "stress.h"

namespace stress
{

/* A subscriber looks at rows. With late workers nothing is promised of them. */
void
agent::look(const held &h)
{
	const bool text = is_text(h.request);
	struct request_text t;

	if (w->o.late)
		return;
	if (text)
		t = request_text(h.request);
	if (text && h.tokens != t.n_ids) {
		n_misled++;
		wrong("text %" PRIu64 " has %u rows, should have %u", h.request, h.tokens, t.n_ids);
		return;
	}
	for (uint32_t i = 0; i < h.tokens; i++) {
		const uint32_t id = text ? t.ids[i] : id_of(h.request, i);

		for (uint32_t k = 0; k < DIM; k++) {
			if (h.rows[i * DIM + k] != element(id, k)) {
				n_misled++;
				wrong("request %" PRIu64 " row %u: %f, should be %f", h.request, i,
					(double)h.rows[i * DIM + k], (double)element(id, k));
				return;
			}
		}
	}
}

void
agent::deliver(const struct tokg_out_entry *e)
{
	held h = {};

	if (e->request >= w->delivered.size() || e->request % PRODUCERS != e->producer) {
		n_misled++;
		wrong("request %" PRIu64 " does not exist", e->request);
		return;
	}
	if (w->delivered[e->request]++ > 0) {
		n_misled++;
		wrong("request %" PRIu64 " is there twice", e->request);
	}
	n_texts += (e->flags & TOKG_TEXT) != 0;
	h.producer = e->producer;
	h.slot = e->slot;
	h.ticket = e->ticket;
	h.request = e->request;
	h.tokens = e->tokens;
	h.rows = (const float *)((uint8_t *)w->d->outputs + e->producer * OUT_BYTES +
				 (e->out_off & (OUT_BYTES - 1)));
	h.until = steps + r.below(64);
	look(h);
	holds.push_back(h);
}

bool
agent::take()
{
	const struct tokg_out_entry *const e = tokg_outbox_entry(w->d->outbox, taken);

	if (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != taken + 1)
		return false;
	if (__atomic_load_n(&w->d->outbox->reserved, __ATOMIC_RELAXED) - taken > w->d->outbox->n)
		wrong("the outbox has overflowed at %" PRIu64, taken);
	taken++;
	if (e->status == 0) {
		n_holes++;
		return true;
	}
	n_entries++;
	n_redo += e->redo;
	status[e->status & 15]++;
	if (e->producer >= PRODUCERS || e->slot >= SLOTS || e->part >= 32) {
		wrong("entry %" PRIu64 " is of producer %u slot %u", taken - 1, e->producer,
			e->slot);
		return true;
	}
	seen &s = slot[e->producer][e->slot];

	n_late += e->incarnation < w->d->incarnation;
	if (e->ticket < s.ticket) {
		if (w->o.late)
			return true;
		wrong("an entry for ticket %" PRIx64 " after %" PRIx64, e->ticket, s.ticket);
	} else if (e->ticket > s.ticket) {
		s.ticket = e->ticket;
		s.delivered = s.unmarked = 0;
	}
	if (e->status != TOKG_OK)
		return true;
	/* All that a dead producer had published was read before its producer slot was given away.
	 */
	if (e->epoch != w->p[e->producer].epoch && w->o.late)
		return true;
	if (e->epoch != w->p[e->producer].epoch)
		wrong("request %" PRIu64 " is of epoch %u, of a predecessor", e->request, e->epoch);
	if (e->redo == 0 && (s.unmarked >> e->part & 1))
		wrong("request %" PRIu64 " was embedded twice, and neither is marked", e->request);
	s.unmarked |= (e->redo == 0 ? 1u : 0u) << e->part;
	if (s.delivered >> e->part & 1) {
		n_dropped++;
		if (e->redo == 0 && !w->o.late) /* the later one is */
			wrong("request %" PRIu64 " was embedded twice and is not marked",
				e->request);
	} else {
		s.delivered |= 1u << e->part;
		deliver(e);
	}
	return true;
}

/* In the order of posting: done, all said of it read, and nothing of it held. */
void
agent::release(uint32_t p)
{
	for (;;) {
		const uint32_t i = (uint32_t)(turn[p] % SLOTS);
		seen &s = slot[p][i];
		const uint64_t done = w->load(tokg_done_at(&w->g, p, i)) >> 8;
		const uint64_t reserved =
			__atomic_load_n(&w->d->outbox->reserved, __ATOMIC_ACQUIRE);

		if (done == s.passed)
			return;
		while (taken < reserved && take())
			;
		if (taken < reserved)
			return;
		for (const held &h : holds)
			if (h.producer == p && h.slot == i && h.ticket == s.passed + 1)
				return;
		s.passed++;
		turn[p]++;
		w->d->ops->write_u64(w->d,
			tokg_back_at(&w->g, p) + offsetof(struct tokg_back, released), turn[p]);
	}
}

/* Are all slots of the producer slot done, and its outputs back? */
bool
agent::free_to_give(uint32_t p)
{
	for (uint32_t s = 0; s < SLOTS; s++)
		if (w->load(tokg_hdr_at(&w->g, p, s) + offsetof(struct tokg_hdr, ticket)) !=
			w->load(tokg_done_at(&w->g, p, s)) >> 8)
			return false;
	while (take())
		;
	for (const held &h : holds)
		if (h.producer == p)
			return false;
	return taken == __atomic_load_n(&w->d->outbox->reserved, __ATOMIC_ACQUIRE);
}

void
agent::step()
{
	steps++;
	for (uint32_t n = r.below(8); n > 0 && take(); n--)
		;
	for (size_t i = 0; i < holds.size();) {
		if (holds[i].until > steps) {
			i++;
			continue;
		}
		look(holds[i]); /* the last time */
		holds[i] = holds.back();
		holds.pop_back();
	}
	for (uint32_t p = 0; p < PRODUCERS; p++)
		if (w->p[p].state != DYING || !INJECT)
			release(p);
}

} // namespace stress
