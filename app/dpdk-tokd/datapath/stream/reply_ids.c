/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids for replies: the stream knows their positions in the ring or the side store. Sent zero-copy
 * from the ring if the driver supports it, else copied: af_xdp, for example, sends no packets of
 * several segments.
 */
#include <rte_memcpy.h>

#include "reply.h"
#include "datapath/token_ring_write.h"

/* Index into rec[] (free-running) of the record with id `first`, which exists. */
static uint32_t
find_rec(const struct tokd_stream *s, uint32_t first)
{
	uint32_t lo = s->rec_tail, n = s->rec_head - s->rec_tail;

	while (n > 1) {
		uint32_t half = n / 2;

		if (s->rec[(lo + half) % TOKD_STREAM_RECS].first <= first) {
			lo += half;
			n -= half;
		} else {
			n = half;
		}
	}
	return lo;
}

bool
tokd_reply_ids_available(
	const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first, uint32_t end)
{
	/* Check each: the side store may have been full for some. */
	for (uint32_t i = find_rec(s, first); i != s->rec_head; i++) {
		const struct tokd_stream_rec *rec = &s->rec[i % TOKD_STREAM_RECS];

		if (rec->first >= end)
			break;
		/* Positions in the side store are above any in the ring. */
		if (rec->pos < w->ring.tail)
			return false;
	}
	return true;
}

bool
tokd_reply_ids_recent(const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first)
{
	const uint64_t pos = s->rec[find_rec(s, first) % TOKD_STREAM_RECS].pos;

	return pos < TOKD_REC_IN_SIDE && w->ring.head - pos <= (w->ring.mask + 1) / 2;
}

/* The record's ids, or its text, from byte `from` on. */
static const void *
in_ring(const struct tokd_worker *w, const struct tokd_stream_rec *rec, uint32_t from)
{
	return RTE_PTR_ADD(tokd_rec_ids(tokd_ring_at(&w->ring, rec->pos)), from);
}

static __rte_always_inline void
copy_as(const struct tokd_worker *w, const struct tokd_stream *s, uint32_t each, uint32_t first,
	uint32_t count, void *dst)
{
	uint32_t i = find_rec(s, first);

	while (count > 0) {
		const struct tokd_stream_rec *rec = &s->rec[i++ % TOKD_STREAM_RECS];
		const uint32_t skip = first - rec->first;
		const uint32_t n = RTE_MIN(rec->count - skip, count);
		const uint32_t from = each * skip, bytes = each * n;

		if (unlikely(rec->pos & TOKD_REC_IN_SIDE))
			tokd_side_get(&w->side, (uint32_t)rec->pos, from, bytes, dst);
		else
			rte_memcpy(dst, in_ring(w, rec, from), bytes);
		dst = RTE_PTR_ADD(dst, bytes);
		first += n;
		count -= n;
	}
}

/* Inlined twice: copying ids is as fast as if there were no text. */
void
tokd_reply_ids_copy(const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first,
	uint32_t count, void *dst)
{
	if (tokd_stream_is_bytes(s))
		copy_as(w, s, 1, first, count, dst);
	else
		copy_as(w, s, sizeof(uint32_t), first, count, dst);
}

uint32_t
tokd_reply_text_whole(
	const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first, uint32_t count)
{
	uint8_t byte;

	for (uint32_t n = count, back = 0; back < 4 && back <= count; n--, back++) {
		tokd_reply_ids_copy(w, s, first + n, 1, &byte);
		if ((byte & 0xc0) != 0x80) /* a character begins with it */
			return n;
	}
	return count; /* no UTF-8 */
}

/* As ids of 2 bytes. */
static void
copy_short(const struct tokd_worker *w, const struct tokd_stream *s, uint32_t first, uint32_t count,
	void *dst)
{
	uint32_t ids[2 * TOKD_REPLY_IDS];
	uint16_t *shorter = dst;

	tokd_reply_ids_copy(w, s, first, count, ids);
	for (uint32_t k = 0; k < count; k++)
		shorter[k] = (uint16_t)ids[k];
}

/* Append a segment for each record from the i-th on. False: not possible, m is unchanged. */
static bool
attach(struct tokd_worker *w, const struct tokd_stream *s, uint32_t i, uint32_t first,
	uint32_t count, struct rte_mbuf *m)
{
	const uint32_t bytes = tokd_stream_bytes(s, count);
	struct rte_mbuf *last = m;
	uint16_t n = 0;

	while (count > 0) {
		const struct tokd_stream_rec *rec = &s->rec[i++ % TOKD_STREAM_RECS];
		uint32_t skip = first - rec->first;
		uint32_t part = RTE_MIN(rec->count - skip, count);
		const uint32_t length = tokd_stream_bytes(s, part);
		/* net_tap sums 16-bit words of each segment by itself. */
		const bool odd = length % 2 != 0 && part < count;
		struct rte_mbuf *seg = NULL;

		if (n < TOKD_ZC_SEGS && !(rec->pos & TOKD_REC_IN_SIDE) && likely(!odd))
			seg = tokd_zero_copy_segment(
				w, rec->pos, in_ring(w, rec, tokd_stream_bytes(s, skip)), length);
		if (unlikely(seg == NULL)) {
			rte_pktmbuf_free(m->next);
			m->next = NULL;
			return false;
		}
		last->next = seg;
		last = seg;
		n++;
		first += part;
		count -= part;
	}
	m->nb_segs += n;
	m->pkt_len += bytes;
	w->counter[C_REPLY_IN_PLACE] += bytes;
	return true;
}

void
tokd_reply_ids_put(struct tokd_worker *w, const struct tokd_stream *s, uint32_t first,
	uint32_t count, struct rte_mbuf *m)
{
	const uint16_t bytes = (uint16_t)(count << tokd_reply_shift(s));

	if (w->zc.pool != NULL && tokd_rec_words(tokd_stream_kind(s), count) >= w->zc.min &&
		attach(w, s, find_rec(s, first), first, count, m))
		return;
	w->counter[C_REPLY_COPIED] += bytes;
	/* tokd_worker_init() has checked the size of mbufs. */
	if (s->flags & TOKD_F_SHORT)
		copy_short(w, s, first, count, rte_pktmbuf_append(m, bytes));
	else
		tokd_reply_ids_copy(w, s, first, count, (void *)rte_pktmbuf_append(m, bytes));
}

bool
tokd_reply_again(struct tokd_worker *w, struct tokd_stream *s, uint32_t first, uint32_t end)
{
	const uint64_t most = (uint64_t)TOKD_AGAIN_FACTOR * s->received;

	if (!(s->flags & TOKD_F_IDS) || first >= end)
		return true;
	/* All ids were acknowledged and released. */
	if (first < s->ids_ack && s->ids_ack == s->total && s->state == TOKD_STREAM_DONE)
		return false;
	/* Else an index below ids_ack comes from an old, reordered POLL. */
	first = RTE_MAX(first, s->ids_ack);
	end = RTE_MIN(end, s->sent);
	if (first >= end)
		return true;
	if (!tokd_reply_ids_available(w, s, first, end))
		return false;

	for (uint32_t i = 0; i < TOKD_AGAIN_PACKETS && first < end; i++) {
		uint32_t n = RTE_MIN(end - first, tokd_reply_ids_max(s));

		if (s->again + tokd_reply_bytes(s, 1) > most)
			break;
		n = (uint32_t)RTE_MIN((uint64_t)n,
			(most - s->again - sizeof(struct tokd_rep)) >> tokd_reply_shift(s));
		n = tokd_reply_ids_whole(w, s, first, n, end);
		if (n == 0)
			break;
		if (!tokd_reply_send(w, s, first, n, TOKD_R_NONE))
			break;
		s->again += tokd_reply_bytes(s, n);
		w->counter[C_REPLY_AGAIN]++;
		first += n;
	}
	return true;
}
