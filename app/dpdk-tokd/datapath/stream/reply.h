/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies to clients: reply.c builds packets and decides when, reply_ids.c finds the ids. */
#pragma once

#include "stream.h"

/* The most ids of 4 bytes in one reply packet. */
#define TOKD_REPLY_IDS (TOKD_WIRE_PAYLOAD / sizeof(uint32_t))

/* In a reply to a stream an id has 1 << this bytes; text and answers are counted in bytes. */
static inline uint32_t
tokd_reply_shift(const struct tokd_stream *s)
{
	if (tokd_stream_is_bytes(s))
		return 0;
	return s->flags & TOKD_F_SHORT ? 1 : 2;
}

/* The most ids of one reply packet of a stream. */
static inline uint32_t
tokd_reply_ids_max(const struct tokd_stream *s)
{
	return s->reply_room >> tokd_reply_shift(s);
}

/*
 * Bytes for ids in each reply to the stream that `req`, a DATA, opens: what the path takes, as far
 * as the client knows it, and our own link.
 */
uint16_t tokd_reply_room(
	const struct tokd_worker *w, const struct tokd_req *req, const struct tokd_addr *to);

/* Of a reply with n ids. */
static inline uint64_t
tokd_reply_bytes(const struct tokd_stream *s, uint32_t n)
{
	return sizeof(struct tokd_rep) + ((uint64_t)n << tokd_reply_shift(s));
}

/* Refuse a request, in the same mbuf. */
void tokd_reply_refuse(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, enum tokd_reason reason);

/* Refuse it with BUSY: the client is to try again after this time. */
void tokd_reply_busy(struct tokd_worker *w, struct rte_mbuf *m, const struct tokd_req *req,
	const struct tokd_peer *peer, uint32_t retry_ms);

/*
 * Send one reply packet of a stream: its state, ids [first, first + count), which must be
 * available, and a reason if it failed. False if there is no mbuf, or if its client is not
 * validated and the packet would exceed its limit: it gets VALIDATE instead.
 */
bool tokd_reply_send(struct tokd_worker *w, struct tokd_stream *s, uint32_t first, uint32_t count,
	enum tokd_reason reason);

/* Has one of its packets had a right cookie? Looks at it now, if nobody has. */
bool tokd_reply_is_validated(struct tokd_worker *w, struct tokd_stream *s);

/* What a stream owes, now; if it is touched, at the end of the burst. */
void tokd_reply_now(struct tokd_worker *w, struct tokd_stream *s);

/* Reply to all streams touched since the last call. */
void tokd_reply_flush(struct tokd_worker *w);

/*
 * Replies are sent after this share of the ring has been written, at the latest: what one turn
 * publishes must not overwrite itself before its replies are built.
 */
static inline bool
tokd_reply_is_overdue(const struct tokd_worker *w)
{
	return unlikely(w->ring.head - w->reply_head >= (w->ring.mask + 1) / 4);
}

/* Do only open texts that want no ids early owe replies? */
bool tokd_reply_can_wait(const struct tokd_worker *w);

/* Are ids [first, end) of a stream still in the ring or in the side store? */
bool tokd_reply_ids_available(
	const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first, uint32_t end);

/* Is id `first` in the newer half of the ring, and so not overwritten soon? */
bool tokd_reply_ids_recent(
	const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first);

/* Copy ids [first, first + count), which must be available, to `dst`. */
void tokd_reply_ids_copy(const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first,
	uint32_t count, void *dst);

/* As many of bytes [first, first + count) of text as end with a whole character. */
uint32_t tokd_reply_text_whole(
	const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first, uint32_t count);

/* As many of ids [first, first + count), of those up to `end`, as one packet may have. */
static inline uint32_t
tokd_reply_ids_whole(const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first,
	uint32_t count, uint32_t end)
{
	if (likely(!(s->flags & TOKD_F_DECODE)) || first + count == end)
		return count;
	return tokd_reply_text_whole(w, s, first, count);
}

/* Append ids [first, first + count), which must be available, to packet m: zero-copy, or copied. */
void tokd_reply_ids_put(struct tokd_worker *w, const struct tokd_stream *s, uint32_t first,
	uint32_t count, struct rte_mbuf *m);

/* Send ids [first, end) again: bounded per call and per stream. False if they are lost. */
bool tokd_reply_again(struct tokd_worker *w, struct tokd_stream *s, uint32_t first, uint32_t end);
