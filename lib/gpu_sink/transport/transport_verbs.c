/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hot: WRITEs and READs of one worker. ibv_post_send and ibv_poll_cq are the provider's inline
 * calls into this process's own queues; the completion queue is polled, without events.
 *
 *   FAST    payload WRITE ─▶ header WRITE (64 bytes inline)
 *   STRICT  payload WRITE ─▶ READ of its last 8 bytes ─▶ header WRITE after a fence
 *
 * A queue pair delivers WRITEs in order. Whether GPU memory shows them in that order depends on the
 * platform: in STRICT the READ completes after the payload is placed, and the fence delays the
 * header until then.
 */
#include "verbs.h"

#include <errno.h>
#include <string.h>

#define REAP 16

static uint32_t
room(const struct tokg_verbs *v)
{
	return v->depth - (uint32_t)(v->taken - v->reaped);
}

static struct tokg_verbs_wr *
take(struct tokg_verbs *v, enum ibv_wr_opcode opcode, uint64_t remote, uint32_t key)
{
	struct tokg_verbs_wr *w = &v->wr[v->n_waiting];

	w->wr = (struct ibv_send_wr){.wr_id = ++v->taken,
		.next = NULL,
		.sg_list = &w->sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = v->taken % TOKG_VERBS_SIGNAL == 0 ? IBV_SEND_SIGNALED : 0,
		.wr.rdma = {.remote_addr = remote, .rkey = v->key}};
	w->sge.lkey = key;
	if (v->n_waiting++ > 0)
		w[-1].wr.next = &w->wr;
	return w;
}

int
tokg_verbs_post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order)
{
	struct tokg_verbs *v = (struct tokg_verbs *)t;
	const bool strict = order == TOKG_ORDER_STRICT && bytes > 0;
	const uint64_t at = v->payload_at + (uint64_t)slot * t->geometry.slot_bytes;
	struct tokg_verbs_wr *w;

	if (v->broken)
		return -1;
	if (room(v) < 3)
		return 0;
	if (bytes > 0) {
		w = take(v, IBV_WR_RDMA_WRITE, at, v->source_key);
		w->sge.addr = (uintptr_t)payload;
		w->sge.length = bytes;
	}
	if (strict) {
		w = take(v, IBV_WR_RDMA_READ, at + bytes - sizeof(*v->tail), v->own_key);
		w->sge.addr = (uintptr_t)v->tail;
		w->sge.length = sizeof(*v->tail);
	}
	w = take(v, IBV_WR_RDMA_WRITE, v->hdr_at + slot * sizeof(*hdr), 0);
	w->hdr = *hdr;
	w->sge.addr = (uintptr_t)&w->hdr;
	w->sge.length = sizeof(w->hdr);
	w->wr.send_flags |= IBV_SEND_INLINE | (strict ? IBV_SEND_FENCE : 0);
	return 1;
}

int
tokg_verbs_ask(struct tokg_transport *t, uint32_t lane, uint64_t word)
{
	struct tokg_verbs *v = (struct tokg_verbs *)t;
	struct tokg_verbs_wr *w;

	if (v->broken)
		return -1;
	if (room(v) == 0)
		return 0;
	w = take(v, IBV_WR_RDMA_WRITE, v->ask_at + 8ull * lane, 0);
	w->word = word;
	w->sge.addr = (uintptr_t)&w->word;
	w->sge.length = sizeof(w->word);
	w->wr.send_flags |= IBV_SEND_INLINE;
	return 1;
}

int
tokg_verbs_flush(struct tokg_transport *t)
{
	struct tokg_verbs *v = (struct tokg_verbs *)t;
	struct ibv_send_wr *bad;
	int rc;

	if (v->broken)
		return -1;
	if (v->n_waiting == 0)
		return 0;
	/* So that the queue empties even if nothing follows. */
	v->wr[v->n_waiting - 1].wr.send_flags |= IBV_SEND_SIGNALED;
	v->n_waiting = 0;
	rc = ibv_post_send(v->qp, &v->wr[0].wr, &bad);
	v->broken = rc != 0;
	v->refused = rc == EACCES;
	return v->broken ? -1 : 0;
}

static void
landed(struct tokg_verbs *v)
{
	struct tokg_back *last = v->t.back;

	v->t.back = v->landing;
	v->t.done = (uint64_t *)(v->t.back + 1);
	v->landing = last;
	v->back_wr = 0;
	v->t.n_reads++;
}

static int
reap(struct tokg_verbs *v, const struct ibv_wc *wc, int n)
{
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			v->status = wc[i].status;
			return -1;
		}
		v->reaped = wc[i].wr_id;
		if (v->back_wr != 0 && wc[i].wr_id == v->back_wr)
			landed(v);
	}
	return n;
}

/*
 * Reaps all completions, at most as many as there are requests in the queue: after that a missing
 * one has really not come, however long this thread slept.
 */
int
tokg_verbs_poll(struct tokg_transport *t)
{
	struct tokg_verbs *v = (struct tokg_verbs *)t;
	struct ibv_wc wc[REAP];
	int n;

	if (v->broken || __atomic_load_n(&t->gone, __ATOMIC_RELAXED))
		return -1;
	do
		n = reap(v, wc, ibv_poll_cq(v->cq, REAP, wc));
	while (n == REAP);
	v->broken = n < 0;
	return n < 0 ? -1 : 0;
}

uint64_t
tokg_verbs_read(struct tokg_verbs *v, void *to, uint64_t from, uint32_t bytes)
{
	struct tokg_verbs_wr *w;

	if (room(v) == 0)
		return 0;
	w = take(v, IBV_WR_RDMA_READ, from, v->own_key);
	w->sge.addr = (uintptr_t)to;
	w->sge.length = bytes;
	w->wr.send_flags |= IBV_SEND_SIGNALED;
	return w->wr.wr_id;
}

/* Sends it at once, with all waiting requests. */
int
tokg_verbs_read_back(struct tokg_transport *t)
{
	struct tokg_verbs *v = (struct tokg_verbs *)t;
	uint64_t id;

	if (v->broken)
		return -1;
	if (v->back_wr != 0)
		return 0;
	id = tokg_verbs_read(v, v->landing, v->back_at, t->read_bytes);
	if (id == 0)
		return 0;
	v->back_wr = id;
	return tokg_verbs_flush(t) < 0 ? -1 : 1;
}
