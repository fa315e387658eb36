/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of verbs: memory and queue pair; reconnecting. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <monotonic.h>
#include "transport_inside.h"
#include "verbs.h"
#include "verbs_qp.h"

/* Our address towards the agent, as in a GID. Sends nothing. */
static bool
address_towards(const struct tokg_where *where, uint8_t gid[16])
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	const struct sockaddr *to = (const struct sockaddr *)&where->addr[0];
	const int s = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const bool found = s >= 0 && connect(s, to, where->len[0]) == 0 &&
			   getsockname(s, (struct sockaddr *)&own, &len) == 0;

	if (s >= 0)
		close(s);
	return found && tokg_rdma_address((const struct sockaddr *)&own, gid);
}

static void
undo(struct tokg_transport *t)
{
	struct tokg_verbs *v = (struct tokg_verbs *)t;

	if (v->qp != NULL)
		ibv_destroy_qp(v->qp);
	if (v->cq != NULL)
		ibv_destroy_cq(v->cq);
	v->qp = NULL;
	v->cq = NULL;
	v->reading = false;
}

/* A new queue pair and completion queue each time, without old completions. */
static bool
prepare(struct tokg_transport *t, struct tokg_hello *h, struct tokg_error *err)
{
	struct tokg_verbs *v = (struct tokg_verbs *)t;

	v->cq = ibv_create_cq(v->rdma.context, (int)v->depth, NULL, NULL, 0);
	if (v->cq == NULL)
		return tokg_wrong(err, "%s: a completion queue of %u: %s", v->rdma.name, v->depth,
			strerror(errno));
	v->qp = tokg_qp_make(&v->rdma, v->cq, v->depth, 0, &v->mine, err);
	h->qp = v->mine;
	return v->qp != NULL;
}

/* Two back areas (one is used while the other is written), the word of STRICT, the headers. */
static bool
own_memory(struct tokg_verbs *v, struct tokg_error *err)
{
	const struct tokg_geometry *g = &v->t.geometry;
	const size_t back = g->back_stride;
	uint8_t *own;

	v->own_bytes = tokg_align(2 * back + TOKG_LINE + g->slots * sizeof(struct tokg_hdr),
		(uint64_t)sysconf(_SC_PAGESIZE));
	own = v->own = tokg_own_memory(v->own_bytes, v->node);
	if (own == NULL)
		return tokg_wrong(err, "cannot allocate %zu bytes for the GPU ring's back area",
			v->own_bytes);
	v->own_mr = ibv_reg_mr(v->rdma.pd, own, v->own_bytes, IBV_ACCESS_LOCAL_WRITE);
	if (v->own_mr == NULL) {
		tokg_rdma_no_mr(err, "the copy of the back area", v->own_bytes);
		return false;
	}
	v->own_key = v->own_mr->lkey;
	v->t.back = (struct tokg_back *)own;
	v->t.done = (uint64_t *)(v->t.back + 1);
	v->landing = (struct tokg_back *)(own + back);
	v->tail = (uint64_t *)(own + 2 * back);
	v->headers = (struct tokg_hdr *)(own + 2 * back + TOKG_LINE);
	return true;
}

static bool
admit(struct tokg_transport *t, const struct tokg_welcome *w, int region_fd, struct tokg_error *err)
{
	struct tokg_verbs *v = (struct tokg_verbs *)t;
	const struct tokg_geometry *g = &t->geometry;

	(void)region_fd;
	if (w->address > UINT64_MAX - g->region_bytes)
		return tokg_wrong(err, "the agent's region of %llu bytes at 0x%llx: beyond the end",
			(unsigned long long)g->region_bytes, (unsigned long long)w->address);
	if (v->own == NULL && !own_memory(v, err))
		return false;
	v->key = w->key;
	v->hdr_at = w->address + tokg_hdr_at(g, t->producer, 0);
	v->payload_at = w->address + tokg_payload_at(g, t->producer, 0);
	v->back_at = w->address + tokg_back_at(g, t->producer);
	v->ask_at = w->address + tokg_ask_at(g, t->producer, 0);
	t->read_bytes = tokg_back_bytes(g, true);
	v->n_waiting = 0;
	v->taken = 0;
	v->reaped = 0;
	v->back_wr = 0;
	v->broken = false;
	return tokg_qp_connect(&v->rdma, v->qp, &v->mine, &w->qp, true, err);
}

static int
read_tickets(struct tokg_verbs *v, uint64_t *tickets)
{
	const uint32_t slots = v->t.geometry.slots;

	if (!v->reading) {
		if (tokg_verbs_read(v, v->headers, v->hdr_at,
			    (uint32_t)(slots * sizeof(struct tokg_hdr))) == 0 ||
			tokg_verbs_flush(&v->t) < 0)
			return -1;
		v->reading = true;
	}
	if (tokg_verbs_poll(&v->t) < 0)
		return -1;
	if (v->reaped != v->taken)
		return 0;
	for (uint32_t i = 0; i < slots; i++)
		tickets[i] = v->headers[i].ticket;
	return 1;
}

/*
 * A software device (soft-RoCE) sends by a write() to its file for each doorbell. The kernel
 * refuses that to a thread whose capabilities have changed since the file was opened.
 */
static int
refusal(const struct tokg_verbs *v, struct tokg_error *err)
{
	tokg_wrong(err,
		"%s: the kernel takes no request for %s from a program that has dropped its "
		"privileges: a software device needs --sandbox=no",
		v->session.where.name, v->rdma.name);
	return -1;
}

/* Makes a queue pair, then READs the headers. If that fails, starts over. */
static int
reconnect(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err)
{
	struct tokg_verbs *v = (struct tokg_verbs *)t;
	const uint64_t now = monotonic_ms();
	int rc = 1;

	if (v->refused)
		return refusal(v, err);
	if (!v->again) {
		v->again = true;
		v->reading = false;
		v->again_end_ms = now + TOKG_RECONNECT_MS;
	}
	if (!v->reading)
		rc = tokg_session_again(&v->session, t, err);
	if (rc > 0) {
		rc = read_tickets(v, tickets);
		if (rc < 0)
			v->reading = false;
		if (rc <= 0 && now >= v->again_end_ms)
			tokg_wrong(err, "%s: no headers read by RDMA within %u ms",
				v->session.where.name, TOKG_RECONNECT_MS);
		if (rc <= 0)
			rc = now >= v->again_end_ms ? -1 : 0;
	}
	if (rc < 0 && v->status != IBV_WC_SUCCESS) {
		const struct tokg_error last = *err;

		tokg_wrong(err, "%.170s (queue pair error: %s)", last.text,
			ibv_wc_status_str(v->status));
	}
	if (rc > 0)
		v->status = IBV_WC_SUCCESS; /* the next error may differ */
	if (rc != 0) {
		v->again = false;
		v->reading = false;
	}
	return rc;
}

static void
describe(const struct tokg_transport *t, char path[256])
{
	const struct tokg_verbs *v = (const struct tokg_verbs *)t;
	const struct tokg_qp *theirs = &v->session.dial.welcome.qp;
	const uint32_t mtu = theirs->mtu < v->mine.mtu ? theirs->mtu : v->mine.mtu;

	snprintf(path, 256,
		"verbs, producer %u of %u: %s, %s, MTU %u, QPN 0x%x PSN 0x%x to QPN 0x%x PSN 0x%x, "
		"rkey 0x%x",
		t->producer, t->geometry.producers,
		t->order == TOKG_ORDER_STRICT ? "STRICT" : "FAST", v->rdma.text, 128u << mtu,
		v->mine.qpn, v->mine.psn, theirs->qpn, theirs->psn, v->key);
}

static void
close_verbs(struct tokg_transport *t)
{
	struct tokg_verbs *v = (struct tokg_verbs *)t;

	tokg_session_end(&v->session, t);
	if (v->own_mr != NULL)
		ibv_dereg_mr(v->own_mr);
	if (v->source_mr != NULL)
		ibv_dereg_mr(v->source_mr);
	tokg_own_free(v->own, v->own_bytes);
	tokg_rdma_close(&v->rdma);
	free(v->wr);
	free(v);
}

static const struct tokg_session_calls calls = {.prepare = prepare, .admit = admit, .undo = undo};

static const struct tokg_transport_ops ops = {
	.name = "verbs",
	.post = tokg_verbs_post,
	.ask = tokg_verbs_ask,
	.flush = tokg_verbs_flush,
	.poll = tokg_verbs_poll,
	.read_back = tokg_verbs_read_back,
	.reconnect = reconnect,
	.describe = describe,
	.close = close_verbs,
};

static bool
open_device(struct tokg_verbs *v, const struct tokg_target *target,
	const struct tokg_source *source, struct tokg_error *err)
{
	uint8_t address[16];
	const struct tokg_rdma_wish wish = {.device = target->rdma_device,
		.port = target->rdma_port,
		.gid = target->rdma_gid,
		.tclass = target->rdma_tclass,
		.sl = target->rdma_sl,
		.address = address_towards(&v->session.where, address) ? address : NULL};

	if (!tokg_rdma_open(&v->rdma, &wish, err))
		return false;
	v->depth = v->rdma.wr_max < TOKG_VERBS_WRS ? v->rdma.wr_max : TOKG_VERBS_WRS;
	v->wr = calloc(v->depth, sizeof(*v->wr));
	if (v->wr == NULL || v->depth < 4)
		return tokg_wrong(err, "%s: a queue of %u requests: too few, or no memory for them",
			v->rdma.name, v->depth);
	v->source_mr = ibv_reg_mr(v->rdma.pd, source->base, source->bytes, 0);
	if (v->source_mr == NULL) {
		tokg_rdma_no_mr(err, "the token ring", source->bytes);
		return false;
	}
	v->source_key = v->source_mr->lkey;
	return true;
}

struct tokg_transport *
tokg_verbs_new(const struct tokg_target *target, const struct tokg_source *source,
	uint32_t timeout_ms, struct tokg_session **session, struct tokg_error *err)
{
	struct tokg_verbs *v = calloc(1, sizeof(*v));

	if (v == NULL) {
		tokg_wrong(err, "cannot allocate the transport to the GPU ring");
		return NULL;
	}
	v->t.link = -1;
	v->t.ops = &ops;
	v->node = source->node;
	*session = &v->session;
	if (!tokg_session_init(&v->session, &calls, target, source, err) ||
		!tokg_session_answered(&v->session, timeout_ms, err) ||
		!open_device(v, target, source, err)) {
		close_verbs(&v->t);
		return NULL;
	}
	return &v->t;
}
