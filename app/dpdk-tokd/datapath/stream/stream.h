/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams: one text each, from packets to ids; with TOKD_F_DECODE from ids to text, which then
 * stands where ids do. With TOKD_F_GENERATE (generate.h) that is an answer, made when all is fed.
 * doc/reference/protocol.md defines the states.
 *
 *                    all fed, text_crc correct; all of the answer published
 *          ┌─────────────────────────────────────▶ DONE ───┐  done-timeout,
 *   FREE ─▶ OPEN                                            ├─▶ FREE
 *          └──▶ FAILED, ABORT not yet ──▶ FAILED ───────────┘  or evicted for a new one
 *               in the ring (aborting)
 */
#pragma once

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_common.h>

#include <tok.h>
#include <tokd/block_keys.h>
#include <tokd/wire.h>

#include "datapath/net.h"
#include "datapath/source/source.h"
#include "decode.h"
#include "done_names.h"

#if RTE_BYTE_ORDER != RTE_LITTLE_ENDIAN
#error "wire.h is little-endian and read without conversion: big-endian machines are not supported"
#endif

/* Packets with the same key belong to one stream. Compared and hashed as bytes: no padding. */
struct tokd_stream_key {
	struct tokd_addr addr;
	uint64_t stream_id;
	uint32_t epoch;
	uint32_t vocab; /* as the client names it: a checksum, or 0 */
	uint16_t port, our_port;
	uint16_t zero[2];
};
static_assert(sizeof(struct tokd_stream_key) == 40, "hash key must not have padding");

enum tokd_stream_state {
	TOKD_STREAM_FREE = 0,
	TOKD_STREAM_OPEN,
	TOKD_STREAM_DONE,
	TOKD_STREAM_FAILED,
};

/* An early packet, held until its turn. */
struct tokd_held {
	struct rte_mbuf *m; /* begins with the tokd_req */
	uint64_t t_rx;
};

/* Where ids are that the client has not acknowledged. */
#define TOKD_REC_IN_SIDE (UINT64_C(1) << 63)
struct tokd_stream_rec {
	uint64_t pos; /* in the ring; or TOKD_REC_IN_SIDE | block of the side store */
	uint32_t first, count;
};

#define TOKD_STREAM_RECS 128 /* the reply window */
/* The same for text, in bytes: ids of long tokens must not fill ring and side store. */
#define TOKD_STREAM_TEXT (256u << 10)
/* Flags that all packets of a stream have, or none; in `flags`, too. */
#define TOKD_STREAM_MODE (TOKD_F_DECODE | TOKD_F_SKIP_SPECIAL | TOKD_F_GENERATE)
/*
 * In `flags`, never on the wire: what its client gets are bytes, in records of kind TEXT: of text
 * decoded, or of an answer, from when its prompt is complete.
 */
#define TOKD_STREAM_BYTES (1u << 15)
#define TOKD_NO_PACKET UINT32_MAX
static_assert(RTE_IS_POWER_OF_2(TOKD_WIRE_WINDOW) && TOKD_WIRE_WINDOW <= 64, "one word of bits");
static_assert((TOKD_STREAM_RECS & (TOKD_STREAM_RECS - 1)) == 0, "indexed by masking");

/* Ids of an answer that were made and are not in the token ring. */
#define TOKD_ANSWER_IDS 256
static_assert(RTE_IS_POWER_OF_2(TOKD_ANSWER_IDS), "indexed by masking");

struct tokd_answer {
	TAILQ_ENTRY(tokd_stream) ready; /* while queued: in the sink's list `ready` */
	bool queued;
	bool begun;	     /* an id is in the token ring */
	uint32_t head, tail; /* free-running indices into id[] */
	struct tokd_decode decode;
	uint32_t id[TOKD_ANSWER_IDS];
};

struct tokd_stream {
	TAILQ_ENTRY(tokd_stream) link;	    /* in the list of its state */
	TAILQ_ENTRY(tokd_stream) of_source; /* in the list of its state, of its source */
	TAILQ_ENTRY(tokd_stream) watch;	    /* while watched: in a bucket of the side store */
	uint64_t watch_pos;		    /* selects the bucket */
	TAILQ_ENTRY(tokd_stream) later;	    /* while deferred: in the queue of its source */
	LIST_ENTRY(tokd_stream) keyed;	    /* not FREE: in a bucket of by_key */
	LIST_ENTRY(tokd_stream) known;	    /* OPEN, with a sink: in a bucket of by_serial */
	struct tokd_source *source;
	struct tokd_stream_key key;
	struct tokd_peer peer; /* of its first packet */
	uint8_t state;	       /* enum tokd_stream_state */
	uint8_t reason;	       /* FAILED: enum tokd_reason */
	uint8_t error;	       /* FAILED by the tokenizer: enum tok_error_code */
	uint8_t end;	       /* GENERATE: enum tokd_made_end or tokg_end; 0: not ended */
	/* TOKD_F_IDS, _STREAM, _SHORT and _MODE of its packets; SHORT if it can be. GENERATE: IDS
	 * when its prompt is complete. */
	uint16_t flags;
	uint16_t reply_room; /* bytes of ids in a reply, at most; a multiple of 4 */
	bool touched;	     /* is in w->touched */
	bool due;	     /* owes a reply at the end of the burst */
	bool flush;	     /* with all ids, also if they do not fill a packet */
	bool backpressured;  /* the ring was full when it was last fed: credit is 0 */
	bool no_lane;	     /* GENERATE: the same for lanes */
	bool aborting;	     /* FAILED, and its ABORT record is not in the ring yet */
	bool published;	     /* its first record is in the ring */
	bool watched;	     /* has unacknowledged ids in the ring */
	bool deferred;	     /* is in the queue of its source */
	bool told_to_wait;   /* its client asked while it was: credit is 0 until it is fed */
	bool gathered;	     /* is in w->gathered */
	uint8_t waiting;     /* packets held from `next` on, while it is deferred or gathered */
	bool awaited;	     /* DONE, ids not all acknowledged: in list awaited */
	bool validated;	     /* a cookie of its client was right */
	bool uncounted;	     /* DONE: the GPU tokenizes it, so that `total` is not known here */
	uint16_t lane;	     /* GENERATE: the sink's that it has, + 1; 0: none */
	uint32_t unacked;    /* packets fed since the last reply */
	uint64_t t_active;   /* TSC of its latest packet; OPEN: that made progress */
	uint64_t serial;     /* of its records */
	uint64_t name;	     /* of its key and MAC address: for names */
	struct tokb *keys;   /* of its blocks; NULL: without --block-keys */
	struct tokd_gpu_text *gpu_text; /* OPEN: keeps its text; NULL: it is not kept */
	struct tokd_terms *terms;	/* OPEN: that it began with */
	uint32_t max_text;		/* of these, also when they have gone */
	uint32_t vocab;			/* the same: its vocabulary's checksum */

	/* times, TSC */
	uint64_t t_open;    /* its first packet was received */
	uint64_t t_last;    /* its last record was published; 0 before, and after the last reply */
	uint64_t tok_ticks; /* spent in the tokenizer */

	/* text */
	uint32_t next;	    /* number of the next packet to feed */
	uint32_t last;	    /* number of the packet with LAST, or TOKD_NO_PACKET */
	uint32_t part;	    /* bytes of packet `next` already fed */
	uint32_t text_end;  /* bytes fed */
	uint32_t text_crc;  /* CRC32C of them */
	uint64_t held_bits; /* bit i: packet next + i is held */

	/* ids */
	uint32_t total;		     /* published */
	uint32_t ids_crc;	     /* CRC32C of them */
	uint32_t sent;		     /* ids below were sent at least once */
	uint32_t ids_ack;	     /* ids below were acknowledged */
	uint32_t rec_head, rec_tail; /* free-running indices into rec[] */

	/* bytes in datagrams */
	uint64_t received;
	uint64_t replied;
	uint64_t again;	 /* of these, to retransmit ids */
	uint64_t cookie; /* the latest, not checked yet; 0: none */

	struct tokd_stream_rec rec[TOKD_STREAM_RECS]; /* rising in first, and in pos */
	struct tokd_held held[TOKD_WIRE_WINDOW];      /* by number modulo window */
	union {
		/* Its first lines are prefetched. */
		struct tok_stream tok __rte_cache_aligned;
		struct tokd_decode decode; /* with TOKD_F_DECODE */
		struct tokd_answer answer; /* when its prompt is complete */
	};
} __rte_cache_aligned;

/*
 * Addresses can be forged. RFC 9000 8.1: until a client is validated it gets at most three times
 * the bytes received for its stream. Afterwards only retransmitted ids are limited, to
 * TOKD_AGAIN_FACTOR times these bytes.
 */
#define TOKD_UNVALIDATED_FACTOR 3
#define TOKD_AGAIN_FACTOR 8
#define TOKD_AGAIN_PACKETS 32 /* per POLL */
#define TOKD_ACK_EVERY 16     /* packets per reply, at most */

LIST_HEAD(tokd_stream_bucket, tokd_stream);

/*
 * A request that was taken. It waits until the next one of the burst has been taken: meanwhile the
 * memory that its look-up needs arrives.
 */
struct tokd_arrival {
	struct rte_mbuf *m; /* NULL: none */
	struct tokd_peer peer;
	struct tokd_req req;
	struct tokd_stream_key key;
	struct tokd_stream_bucket *bucket; /* of the key */
	uint64_t name;			   /* of key and MAC address */
};

/* Lists are ordered by t_active, the oldest first. */
struct tokd_streams {
	/* Hashed by key, with the secret of names. */
	struct tokd_stream_bucket *by_key;
	struct tokd_arrival arrival[2];	   /* the one that waits, and the one in work */
	uint32_t waits;			   /* index of the former */
	const struct tokd_arrival *looked; /* what was looked for last */
	uint32_t key_mask;
	struct tokd_names names; /* of texts that have ended */
	uint64_t cookie_key[2];
	struct tokd_stream_list free;
	struct tokd_stream_list open;
	struct tokd_stream_list aborting;    /* FAILED, ABORT record waits for space in the ring */
	struct tokd_stream_list finished;    /* DONE or FAILED */
	_Atomic uint32_t n_open;	     /* written by the worker, read by the control thread */
	_Atomic uint32_t n_used;	     /* the same: not FREE */
	uint64_t open_ticks, finished_ticks; /* time limits in TSC ticks */
	uint64_t mean_open;		     /* ticks that texts were open, of late */
	uint32_t n; /* may be open; there is one more (tokd_stream_make_ready) */
	struct tokd_stream *stream;
	/* One for each stream: see control/tables/key_table.c. NULL: without --block-keys. */
	uint8_t *keys;
	size_t keys_each; /* bytes */
	/* For the sink: hashed by serial, with a secret. */
	struct tokd_stream_bucket *by_serial;
	uint64_t serial_secret;
	uint32_t serial_shift;
};

/* More than half of the streams are open: shares count, and the rest is for validated clients. */
static inline bool
tokd_streams_are_scarce(const struct tokd_streams *t)
{
	return atomic_load_explicit(&t->n_open, memory_order_relaxed) > t->n / 2;
}

/* stream_state.c */
/* Sets `bucket` and `name`, and fetches what is there. */
void tokd_stream_look_up(const struct tokd_streams *t, struct tokd_arrival *a);
/* The stream of its MAC address; if there is none, one of another; NULL: neither. */
struct tokd_stream *tokd_stream_find(struct tokd_worker *w, const struct tokd_arrival *a);
/* The OPEN stream with this serial, or NULL. Only if the worker has a sink. */
struct tokd_stream *tokd_stream_of_serial(const struct tokd_streams *t, uint64_t serial);
/*
 * For a key that was just looked for, and a source of tokd_source_of(). Returns NULL and
 * sets `why`: BUSY (counted) if no stream is free and none can be evicted; EXPIRED if the text has
 * ended before.
 */
struct tokd_stream *tokd_stream_open(struct tokd_worker *w, struct tokd_source *source,
	const struct tokd_stream_key *key, const struct tokd_vocab *vocab, uint16_t flags,
	enum tokd_reason *why);
/*
 * After a turn's replies: evict a stream now if the next one to open needs that, and fetch its
 * memory, which was last used long ago.
 */
void tokd_stream_make_ready(struct tokd_worker *w);
void tokd_stream_done(struct tokd_worker *w, struct tokd_stream *s);
void tokd_stream_fail(struct tokd_worker *w, struct tokd_stream *s, enum tokd_reason reason);
/* False while the ring is full. */
bool tokd_stream_abort(struct tokd_worker *w, struct tokd_stream *s);
/* Only puts the ABORT record into the ring, which must not have one with LAST. */
bool tokd_stream_put_abort(struct tokd_worker *w, const struct tokd_stream *s);
void tokd_stream_release(struct tokd_worker *w, struct tokd_stream *s);
/* Rule 9: the client has the ids below `ids_ack`. Ids never sent cannot be acknowledged. */
void tokd_stream_ids_ack(struct tokd_worker *w, struct tokd_stream *s, uint32_t ids_ack);
/* It gets a reply at the end of the burst, if it owes one. */
void tokd_stream_touch(struct tokd_worker *w, struct tokd_stream *s);
/* Restarts its time limit: moves it to the end of its list. */
void tokd_stream_renew(struct tokd_worker *w, struct tokd_stream *s);
/* Its next packet, which is held, is fed in a later turn. */
void tokd_stream_defer(struct tokd_worker *w, struct tokd_stream *s);

/* stream_share.c */
/* While streams are scarce: may a source open one, in place of another's? Counted if not. */
bool tokd_share_admits(struct tokd_worker *w, const struct tokd_source *source);
/* While streams are scarce: if all are open, fails the one that has to give way. */
void tokd_share_evict(struct tokd_worker *w);
/* The finished stream that has to give way, or NULL. */
struct tokd_stream *tokd_share_evictable(struct tokd_worker *w);
/* When a refused source may try again. */
uint32_t tokd_share_retry_ms(const struct tokd_worker *w, const struct tokd_source *source);
/* While streams or lanes are scarce: an open one has made progress, too little to renew its time
 * limit? */
bool tokd_share_is_slow(const struct tokd_worker *w, const struct tokd_stream *s);
/* One of its texts made no progress, or was evicted. */
void tokd_share_died(struct tokd_worker *w, struct tokd_source *source);

/* stream_feed.c */
#define TOKD_PIECE_MAX 2048u /* bytes of text fed at once, of one packet */

enum tokd_feed {
	TOKD_FED,	  /* next advanced; the stream may be DONE */
	TOKD_NOT_FED,	  /* ring or reply window full: not acknowledged */
	TOKD_FEED_LATER,  /* the tokenizer's time of this turn is used up */
	TOKD_FEED_FAILED, /* the stream is FAILED */
};
/* Feed packet `next`, which is m. The caller frees m. */
enum tokd_feed tokd_stream_feed(
	struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m, uint64_t t_rx);
/*
 * Call before each piece: it builds replies in time, and checks that the turn does not get too long
 * and that the source has not had its share. TOKD_FED: feed the piece.
 */
enum tokd_feed tokd_stream_may_feed(struct tokd_worker *w, struct tokd_stream *s);
/*
 * Feed bytes that are in no packet: as many of *n as fit one piece. *n becomes the number fed.
 * `last`: the text ends with the last of the bytes; `want` is then the text's CRC32C.
 */
enum tokd_feed tokd_stream_feed_bytes(struct tokd_worker *w, struct tokd_stream *s,
	const uint8_t *text, uint32_t *n, bool last, uint32_t want, uint64_t t_rx);
/* Feed held packets that are next. */
void tokd_stream_feed_held(struct tokd_worker *w, struct tokd_stream *s);
/* Feed what was held until the burst's frames were taken, packets that follow each other at once.
 */
void tokd_stream_feed_gathered(struct tokd_worker *w);
/* A slice of time for deferred streams, source by source. Their replies become due. */
void tokd_stream_feed_deferred(struct tokd_worker *w);
/*
 * Publish the next `count` bytes of an answer, which are in the record reserved at `pos`. Returns
 * when: TSC.
 */
uint64_t tokd_stream_publish_answer(
	struct tokd_worker *w, struct tokd_stream *s, uint64_t pos, uint32_t count);
/* Updates s->backpressured and no_lane: could a packet of ordinary size be fed now? */
void tokd_stream_probe(struct tokd_worker *w, struct tokd_stream *s);

/* Increases only by useful packets: others must not keep a stream open for ever. */
static inline uint64_t
tokd_stream_progress(const struct tokd_stream *s)
{
	return (uint64_t)s->text_end + s->next + s->ids_ack;
}

/* mbufs that a source may still hold: as many as are left for others, if there are others. */
static inline uint32_t
tokd_held_room(const struct tokd_worker *w, const struct tokd_flow *f)
{
	const uint32_t left = w->held_max - w->n_held;

	if (!w->drr.shared)
		return left;
	return left > f->held ? left - f->held : 0;
}

/* A held packet was fed, or is no longer needed. */
static inline void
tokd_held_free(struct tokd_worker *w, struct tokd_stream *s, struct rte_mbuf *m)
{
	w->n_held -= m->nb_segs;
	s->source->flow.held -= m->nb_segs;
	rte_pktmbuf_free(m);
}

/* Packets held behind a gap wait for their client, not for the tokenizer: they delay nobody. */
static inline void
tokd_held_count(struct tokd_worker *w, struct tokd_stream *s)
{
	const uint64_t gaps = ~s->held_bits;
	int n = 0;

	if (s->deferred || s->gathered)
		n = gaps != 0 ? __builtin_ctzll(gaps) : TOKD_WIRE_WINDOW;
	tokd_drr_count(&w->drr, &s->source->flow, n - s->waiting);
	s->waiting = (uint8_t)n;
}

/* Does its client get bytes, not ids? */
static inline bool
tokd_stream_is_bytes(const struct tokd_stream *s)
{
	return unlikely(s->flags & TOKD_STREAM_BYTES);
}

/* Its prompt is complete: all that comes are bytes of the answer. */
static inline bool
tokd_stream_answers(const struct tokd_stream *s)
{
	return tokd_stream_is_bytes(s) && (s->flags & TOKD_F_GENERATE);
}

/* Of its records. */
static inline enum tokd_rec_kind
tokd_stream_kind(const struct tokd_stream *s)
{
	return tokd_stream_is_bytes(s) ? TOKD_REC_TEXT : TOKD_REC_TOKENS;
}

/* Of `count` ids in a record; of text as many. */
static inline uint32_t
tokd_stream_bytes(const struct tokd_stream *s, uint32_t count)
{
	return tokd_stream_is_bytes(s) ? count : count * (uint32_t)sizeof(uint32_t);
}

/* Records that may still be published until the client acknowledges some. */
static inline uint32_t
tokd_stream_rec_room(const struct tokd_stream *s)
{
	if (tokd_stream_is_bytes(s) && s->total - s->ids_ack >= TOKD_STREAM_TEXT)
		return 0;
	return TOKD_STREAM_RECS - (s->rec_head - s->rec_tail);
}

/* The ids of a record are no longer needed. */
static inline void
tokd_stream_rec_drop(
	struct tokd_worker *w, const struct tokd_stream *s, const struct tokd_stream_rec *rec)
{
	if (unlikely(rec->pos & TOKD_REC_IN_SIDE))
		tokd_side_release(&w->side, (uint32_t)rec->pos, tokd_stream_bytes(s, rec->count));
}

static inline void
tokd_count_record(struct tokd_worker *w)
{
	w->counter[C_RECORDS]++;
	if (w->ring.n_active == 0)
		w->counter[C_RING_UNREAD]++;
}

/* A copy: a request is not aligned in its frame. */
static inline struct tokd_req
tokd_req_read(const struct rte_mbuf *m)
{
	struct tokd_req req;

	memcpy(&req, rte_pktmbuf_mtod(m, const void *), sizeof(req));
	return req;
}
