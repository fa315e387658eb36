/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and reads the region by RDMA, over this worker's queue pair (RC). */
#pragma once

#include "session.h"
#include "verbs_device.h"

#define TOKG_VERBS_WRS 1024  /* requests in the queue, if the device allows it */
#define TOKG_VERBS_SIGNAL 32 /* the most requests per completion */

struct tokg_verbs_wr {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	/* Inline: valid from post to flush. */
	union {
		struct tokg_hdr hdr;
		uint64_t word;
	};
};

struct tokg_verbs {
	struct tokg_transport t; /* first */
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	bool broken;
	bool refused;		   /* the kernel took no request: see refusal() in verbs_open.c */
	enum ibv_wc_status status; /* of the last request that failed */
	/* the agent's, of this producer */
	uint32_t key;
	uint64_t hdr_at, payload_at, back_at, ask_at;
	uint32_t source_key;
	/*
	 * Requests are counted from the making of the queue pair on. Completions of one queue pair
	 * come in order, so one says that all requests up to its wr_id have left the queue.
	 */
	uint32_t depth;
	uint32_t n_waiting; /* in wr[], from 0: not sent yet */
	uint64_t taken, reaped;
	struct tokg_verbs_wr *wr; /* [depth] */
	/* local memory for READs */
	uint32_t own_key;
	struct tokg_back *landing; /* destination of the next back area; t.back is the last one */
	uint64_t back_wr;	   /* of the READ in progress; 0: none */
	uint64_t *tail;		   /* STRICT: unused data */
	struct tokg_hdr *headers;  /* [slots], after a reconnect */
	/* set-up */
	struct tokg_rdma rdma;
	struct ibv_mr *source_mr, *own_mr;
	void *own;
	size_t own_bytes;
	int node;
	struct tokg_qp mine;
	bool again, reading;
	uint64_t again_end_ms;
	struct tokg_session session;
};

/* Hot, transport_verbs.c. */
int tokg_verbs_post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order);
int tokg_verbs_ask(struct tokg_transport *t, uint32_t lane, uint64_t word);
int tokg_verbs_flush(struct tokg_transport *t);
int tokg_verbs_poll(struct tokg_transport *t);
int tokg_verbs_read_back(struct tokg_transport *t);
/* One READ of `bytes` at once: the back area, or the headers after a reconnect. Its wr_id, or 0. */
uint64_t tokg_verbs_read(struct tokg_verbs *v, void *to, uint64_t from, uint32_t bytes);
