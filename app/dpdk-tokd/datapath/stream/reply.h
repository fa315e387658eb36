/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to clients: reply.c makes packets and decides when, reply_ids.c finds the ids. */
#ifndef TOKD_REPLY_H
#define TOKD_REPLY_H

#include "stream.h"

/* Ids in one reply packet at most. */
#define TOKD_REPLY_IDS (TOKD_WIRE_PAYLOAD / sizeof(uint32_t))

/* Refuse a request that has no stream, or not that one, in the mbuf it came in. */
void tokd_reply_refuse(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, enum tokd_reason reason);

/*
 * One reply packet of a stream: its state, ids [first, first + count), and a reason if it failed.
 * False if there is no mbuf. The ids must stand.
 */
bool tokd_reply_send(struct tokd_worker *w, struct tokd_stream *s, uint32_t first, uint32_t count,
	enum tokd_reason reason);

/* Answer all streams touched since the last call. */
void tokd_reply_flush(struct tokd_worker *w);

/* Are ids [first, end) of a stream still in the ring or in the side store? */
bool tokd_reply_ids_stand(
	const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first, uint32_t end);

/* Is id `first` in the younger half of the ring, not to be overwritten soon? */
bool tokd_reply_ids_young(const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first);

/* Ids [first, first + count), which must stand, as the rest of packet m: in place, or a copy. */
void tokd_reply_ids_put(struct tokd_worker *w, const struct tokd_stream *s, uint32_t first,
	uint32_t count, struct rte_mbuf *m);

/*
 * Send ids [first, end) again: bounded per call and per stream. False if they are lost.
 */
bool tokd_reply_again(struct tokd_worker *w, struct tokd_stream *s, uint32_t first, uint32_t end);

#endif
