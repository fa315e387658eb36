/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPU ring: the layout and protocol by which producers (workers of dpdk-tokd) pass token ids to
 * a consumer (a persistent kernel, or CPU threads) through memory that a producer may reach only by
 * RDMA. The same source is compiled as C11 (producer), CUDA C++ (kernel) and C++17 (agent, CPU
 * consumer). doc/reference/gpu-ring.md explains it; this file defines it.
 *
 * One memory region with P producers of S slots each, registered once:
 *
 *   ctl                       geometry; consumer's heartbeat; stop
 *   back[P]  released, epoch, heartbeat, done[S],      what a producer reads back, in one READ
 *            ended[L], log[G]
 *   hdr[P][S]      64 bytes   written by the producer (RDMA WRITE), ticket last
 *   claim[P][S]    u64        consumer only; unused if it has them nearer, as a GPU that reads a
 *                             ring in host memory
 *   ask[P][L]      u64        written by the producer: tokens that it takes
 *   opened[P][L]   u64        consumer and agent only
 *   payload[P][S]  slot_bytes written by the producer, zero-padded to 64 bytes
 *
 * Slots are reused; each use has a ticket, which counts from 1 per slot, below 2^48. Let T be
 * hdr.ticket, D be done >> 8, C the ticket of the claim:
 *
 *   T == D + 1, C != T    pending      published, not claimed
 *   T == D + 1, C == T    processing   by the incarnation in the claim's upper 16 bits
 *   T == D                completed    free as soon as the producer has read `done`
 *
 * A producer uses its slots in circular order 0, 1, .. S-1, 0 ..., and posts to one only after it
 * has read done == its last ticket there. So a consumer can check one slot per producer (its head)
 * instead of all; the cost is that a slow slot is waited for after one round.
 *
 * The way back. Each producer has L lanes (none: nothing is generated). A text whose last slot has
 * GENERATE names a free lane and its next turn. When the slot is done, an engine beside the
 * consumer makes ids for it. They come in `log`, one word each, for all lanes of the producer. The
 * slot is free as ever: a text that goes on for minutes keeps its lane, and neither slot nor rows
 * nor the token ring. Let T be the lane's turn, O that of its `opened`, E that of its `ended`:
 *
 *   O != T             waiting     for its slot to be done
 *   O == T, E != T     decoding    while `ask` grants more than is made; else paused
 *   E == T             completed   the lane is free as soon as the producer has read `ended`, all
 *                                  that was made, and the slot's `done`
 *
 * The engine makes what `ask` has granted and not more. The producer grants what it will read into
 * free space: over all lanes at most G words are granted and not read. So the log is never full and
 * the engine never waits; a client that reads slowly pauses its own lane.
 *
 * Ordering, stated once. "sys": visible to NIC, GPU and host.
 *
 *   producer  payload, then header; ticket is the header's last word. One 64-byte WRITE after the
 *             payload's on the same RC queue pair (shm: plain stores, then `ticket` with release).
 *             consumer: ticket (relaxed, sys), again with acquire, then header and payload: with
 *             the ticket it sees all earlier writes of the producer. No PCIe or GPU manual
 *             guarantees this to a running kernel: hence `check`, and where there is one, a GPU
 *             leaves out the acquire. Header and payload are copied; the copies are checked and
 *             used.
 *   consumer  outputs, outbox entry; release fence (sys); then the entry's seq, and `done`.
 *             Either of these may be seen first: an entry's number is reserved before the fence, so
 *             who sees `done` knows that the entry is there or comes.
 *             producer: reads done[] in one READ (shm: acquire), then may reuse slot and source
 *             bytes. An old value is harmless: D only increases, and the producer waits for it.
 *             A READ completes after the producer's earlier writes have landed: a slot that was
 *             read as done has no write in flight that could land in its next use.
 *   agent     a subscriber's last use of an output, then its cursor (release); agent reads it
 *             (acquire), then `released` (release). producer: reads `released`, then may reuse that
 *             space. `released` passes a slot only when `done` has its ticket (acquire) and the
 *             outbox entries written by then have been read: until then the next incarnation may
 *             write the rows again, and may report OK after BADSUM.
 *   engine    log words, in order, by one thread at a time for each producer; a word has its lap,
 *             so it needs no other. Then a fence (sys), then `ended`, with the number of words.
 *             producer: takes log words while their lap is right; `ended` counts when all are
 *             taken, since a READ may see it before the last ones.
 *   ask       one word. It may land before its header or after, in any order of lanes: until it has
 *             the lane's turn and epoch, nothing is granted. Each turn has one, and a new
 *             connection writes those of all lanes again, so that no ask is older than the turn
 *             before. The agent clears them before it grants an epoch, as the bits of epochs wrap.
 *   epoch     the agent destroys the old queue pair (its key is invalid: nothing more leaves the
 *             NIC), then writes back.epoch, then answers the successor: when all slots are done
 *             and then all lanes that were opened have ended. What the NIC has sent to a GPU may
 *             still land after that, before what it sends for the successor: a header is STALE
 *             then, or fails the check, and an ask is of another epoch.
 *
 *   restart   every worker of an incarnation has ended before the next begins. Outbox entries that
 *             it reserved and did not write are skipped by the reader. Lanes that it opened end as
 *             CUT.
 *
 * Done changes by compare-and-swap from the word with ticket - 1: a late worker of an older
 * incarnation cannot change it. (It could write rows into reused space: hence `restart`.)
 *
 * A slot that was posted again in STRICT mode after BADSUM stays STRICT on a new connection.
 * tests/model proves all of this at small sizes, and that no rule can be left out.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tokd/ring.h>

#define TOKG_MAGIC 0x31475255504b4f54ull /* "TOKPURG1" */
#define TOKG_VERSION 5
#define TOKG_LINE 64	      /* payloads are padded to it; the size of a header */
#define TOKG_PAGE 4096	      /* alignment of sections */
#define TOKG_PRODUCERS_MAX 64 /* workers, of all appliances that share a GPU */
#define TOKG_SLOTS_MAX 4096   /* of one producer; P * S is at most TOKG_SCAN_MAX */
#define TOKG_SCAN_MAX 4096
#define TOKG_SLOT_BYTES_MIN 1024
#define TOKG_SLOT_BYTES_MAX (1u << 20)
#define TOKG_SLOT_BYTES 16384 /* default */
#define TOKG_TEXT_MAX 65536u  /* bytes of a text that the consumer encodes */
#define TOKG_TICKET_MAX ((1ull << 48) - 1)
#define TOKG_LANES_MAX 1024 /* of one producer */
#define TOKG_LOG_MAX 65536  /* words */
#define TOKG_LOG_OF_LANE 4  /* the least words of the log for each lane */
#define TOKG_NO_LANE UINT32_MAX
#define TOKG_OUT_ALIGN 4096 /* alignment and least size of a request's rows */
/* The most posts of a producer with unreleased outputs: 256 MiB of the smallest. */
#define TOKG_UNRELEASED_MAX (1u << 16)

/* How a row is computed from an id. */
enum tokg_kind {
	TOKG_KIND_WORD = 1,	     /* word[id] */
	TOKG_KIND_WORD_POSITION = 2, /* word[id] + position[p]: GPT-2 */
	TOKG_KIND_BERT = 3,	     /* LayerNorm(word[id] + position[p] + type[0]) */
};

/* How a producer writes a slot. */
enum tokg_order {
	TOKG_ORDER_FAST = 0, /* payload WRITE, header WRITE */
	TOKG_ORDER_STRICT,   /* payload WRITE, READ of its tail, header WRITE after a fence */
};

enum tokg_dtype { TOKG_F32 = 1, TOKG_F16 = 2, TOKG_BF16 = 3 };

enum tokg_flags {
	TOKG_FIRST = 1 << 0,  /* the first slot of its text */
	TOKG_LAST = 1 << 1,   /* the text is complete with this slot */
	TOKG_BATCH = 1 << 2,  /* payload: whole records of the token ring; else: `tokens` ids */
	TOKG_ABORT = 1 << 3,  /* the text failed: no more of it comes; tokens is 0 */
	TOKG_STRICT = 1 << 4, /* posted in STRICT mode after a BADSUM */
	/*
	 * Payload: `bytes` bytes of one whole text, which the consumer encodes; `tokens` is 0. With
	 * FIRST and LAST; not with BATCH or ABORT. out_off has room for tokg_out_bytes(bytes): a
	 * text has at most one id per byte. The outbox entry has the number of rows.
	 */
	TOKG_TEXT = 1 << 5,
	/*
	 * With LAST; not with BATCH, ABORT or TEXT. The lane and its turn are above: see
	 * TOKG_GENERATE_FLAGS. In outbox entries without them.
	 */
	TOKG_GENERATE = 1 << 6,
};

/*
 * A lane's turns count from 1 and wrap to 1; 0: none yet. Neighbours must differ, and the next one
 * from that of `ended`: after slots that failed these are not neighbours.
 */
#define TOKG_TURN_MAX 4095
#define TOKG_GENERATE_FLAGS(lane, turn)                                                            \
	((uint32_t)TOKG_GENERATE | (uint32_t)(lane) << 8 | (uint32_t)(turn) << 20)
#define TOKG_FLAGS_LANE(flags) ((flags) >> 8 & 0xfffu)
#define TOKG_FLAGS_TURN(flags) ((uint32_t)(flags) >> 20)
#define TOKG_FLAGS_OF_LANE 0xffffff00u

/*
 * Words of a lane: a number, the turn, and bits of its own. ask: tokens granted in all, enum
 * tokg_ask, and bits of the producer's epoch. ended: tokens made, enum tokg_end. opened: 0, 0.
 */
#define TOKG_LANE_WORD(n, turn, bits) ((uint64_t)(n) << 32 | (uint64_t)(turn) << 8 | (bits))
#define TOKG_LANE_TURN(word) ((uint32_t)((word) >> 8) & 0xfffu)
#define TOKG_LANE_N(word) ((uint32_t)((word) >> 32))
#define TOKG_LANE_BITS(word) ((uint32_t)(word)&0xffu)
#define TOKG_ASK(n, epoch, turn, bits) (TOKG_LANE_WORD(n, turn, bits) | TOKG_EPOCH_BITS(epoch))
#define TOKG_EPOCH_BITS(epoch) ((uint64_t)((epoch)&0xfffu) << 20)
#define TOKG_ASK_EPOCH_BITS(ask) ((ask)&TOKG_EPOCH_BITS(0xfffu))

enum tokg_ask {
	TOKG_ASK_FINAL = 1,  /* no more will be granted: end with LENGTH */
	TOKG_ASK_CANCEL = 2, /* end with CANCELLED */
};

/* How a lane's turn ended. LOST is never in the ring. */
enum tokg_end {
	TOKG_END_STOP = 1,  /* the model's end of a text, which is not in the log */
	TOKG_END_LENGTH,    /* all that was granted, and FINAL; or an external engine can no more */
	TOKG_END_CANCELLED, /* as asked */
	TOKG_END_CUT,	    /* the consumer was restarted, or no engine has it */
	TOKG_END_STALE,	    /* the producer's epoch has ended */
	TOKG_END_LOST,	    /* the agent is gone */
};

/*
 * A word of the log: id, lane, turn, and the lap of its position, which counts from 1 and wraps to
 * 1. Position p is word p % G.
 */
#define TOKG_LAP_MAX 65535
#define TOKG_TOKEN(id, lane, turn, lap)                                                            \
	((uint64_t)(lap) << 48 | (uint64_t)(turn) << 36 | (uint64_t)(lane) << 24 | (id))
#define TOKG_TOKEN_ID(word) ((uint32_t)(word)&0xffffffu)
#define TOKG_TOKEN_LANE(word) ((uint32_t)((word) >> 24) & 0xfffu)
#define TOKG_TOKEN_TURN(word) ((uint32_t)((word) >> 36) & 0xfffu)
#define TOKG_TOKEN_LAP(word) ((uint32_t)((word) >> 48))

/* In the low byte of `done`, and in outbox entries. 0 is never published. */
enum tokg_status {
	TOKG_OK = 1,
	TOKG_BADSUM = 2, /* wrong check word after bounded retries: post again, STRICT */
	TOKG_STALE = 3,	 /* another epoch: of a dead predecessor; or this ticket was written over a
			  * predecessor's half-written header: as BADSUM */
	TOKG_BADHDR = 4, /* contradictory header or record */
	TOKG_BADID = 5,	 /* an id beyond the table: its row is zero */
	TOKG_BADPOS = 6, /* a position beyond the table */
	TOKG_SHED = 7,	 /* not in the ring: of a notice to subscribers (tokd/embeddings.h) */
	TOKG_CPU = 8,	 /* TEXT that the consumer does not encode: encode it, and post the ids */
};

/*
 * Written by the producer at once, after the payload. Fields marked (*) are unused in a BATCH,
 * where each record has them. All records of a BATCH have the same epoch, kind and vocabulary.
 */
struct tokg_hdr {
	uint64_t request; /* (*) `serial` of the record: identifies a text, with producer and epoch
			   */
	uint16_t kind;	  /* enum tokg_kind */
	uint16_t vocab;	  /* index of the vocabulary in the hello; TEXT: 0, the consumer's one */
	uint32_t bytes;	  /* of the payload, before padding */
	uint32_t tokens;  /* ids in the payload, of all records together */
	uint32_t first;	  /* (*) index within the text of the first id */
	uint32_t check;	  /* gpu_check.h; 0 without TOKG_CHECKED */
	uint32_t epoch;	  /* as granted to the producer */
	uint64_t t_post;  /* TSC of the producer */
	uint64_t out_off; /* position of the first row in the producer's outputs, see below */
	uint32_t position0; /* (*) of the first id, for the position table */
	uint32_t flags;	    /* enum tokg_flags */
	uint64_t ticket;    /* written last */
};
static_assert(sizeof(struct tokg_hdr) == 64, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, kind) == 8, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, vocab) == 10, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, bytes) == 12, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, tokens) == 16, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, first) == 20, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, check) == 24, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, epoch) == 28, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, t_post) == 32, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, out_off) == 40, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, position0) == 48, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, flags) == 52, "GPU ring header is ABI");
static_assert(offsetof(struct tokg_hdr, ticket) == 56, "GPU ring header is ABI");

/*
 * Outputs. Each producer has out_bytes. A position counts bytes since the epoch was granted and
 * never decreases; position p is at byte p & (out_bytes - 1). A request's rows begin at a multiple
 * of TOKG_OUT_ALIGN and do not wrap; a BATCH's requests follow each other, each with
 * tokg_out_bytes(). The producer allocates the space, and frees it slot by slot in the order of
 * posting as `released` increases: only it knows the space of a failed slot.
 */

/*
 * The back area, which a producer reads, followed by done[S], ended[L] and log[G]. Agent and
 * consumer write it.
 */
struct tokg_back {
	uint64_t released;    /* slots of this epoch with free outputs, in the order of posting */
	uint64_t heartbeat;   /* increases while the agent runs */
	uint32_t epoch;	      /* granted; 0: the producer slot is free */
	uint32_t incarnation; /* of the consumer, from 1; increases with a restart */
	uint8_t pad[40];
};
static_assert(sizeof(struct tokg_back) == 64, "GPU ring back area is ABI");

enum tokg_geometry_flags {
	TOKG_CHECKED = 1 << 0, /* headers carry a check word and the consumer verifies it */
};

/*
 * The layout, in ctl and in the agent's welcome. tokg_geometry_fill computes the second half from
 * the first; receivers validate it by tokg_geometry_proved before use.
 */
struct tokg_geometry {
	uint32_t producers, slots, slot_bytes;
	uint32_t flags; /* enum tokg_geometry_flags */
	uint32_t kind;	/* enum tokg_kind of the agent's tables */
	uint32_t dtype; /* enum tokg_dtype of rows and tables */
	uint32_t dim;	/* elements of a row */
	uint32_t row_bytes;
	uint32_t n_ids;	      /* rows of the word table */
	uint32_t n_positions; /* rows of the position table; 0: none */
	uint32_t lanes;	      /* of one producer; 0: nothing is generated */
	uint32_t log;	      /* words of one producer's log: a power of two */
	uint64_t out_bytes;   /* of one producer's outputs: a power of two */
	/* offsets in the region */
	uint64_t back_off, back_stride;
	uint64_t hdr_off, claim_off, ask_off, opened_off, payload_off;
	uint64_t region_bytes;
};
static_assert(sizeof(struct tokg_geometry) == 120, "GPU ring geometry is ABI");

struct tokg_ctl {
	uint64_t magic;	     /* TOKG_MAGIC, written last */
	uint32_t version;    /* TOKG_VERSION */
	uint32_t ring_epoch; /* of this region: changes when the agent restarts; never 0 */
	struct tokg_geometry geometry;
	uint64_t heartbeat; /* of the consumer: scans so far, written sometimes */
	uint32_t stop;	    /* enum tokg_stop, written by the agent */
	uint32_t incarnation;
	uint64_t busy; /* its clock, ns: written each ms, also during a scan */
	/* Written by the agent: the external engine that is attached, counted from 1; 0: none. */
	uint64_t engine;
};
static_assert(sizeof(struct tokg_ctl) <= TOKG_PAGE, "ctl is one page");

/* TOKG_STOP_DRAIN: finish what is published, then end. TOKG_STOP_NOW: leave every loop at once. */
enum tokg_stop { TOKG_RUN = 0, TOKG_STOP_DRAIN = 1, TOKG_STOP_NOW = 2 };

#define TOKG_CLAIM(incarnation, ticket) ((uint64_t)(incarnation) << 48 | (ticket))
#define TOKG_DONE(ticket, status) ((uint64_t)(ticket) << 8 | (status))

#ifdef __CUDACC__
#define TOKG_FN static __host__ __device__ inline
#else
#define TOKG_FN static inline
#endif

TOKG_FN uint64_t
tokg_align(uint64_t n, uint64_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* Bytes of outputs that a request of so many tokens takes. */
TOKG_FN uint64_t
tokg_out_bytes(uint64_t tokens, uint32_t row_bytes)
{
	const uint64_t n = tokg_align(tokens * row_bytes, TOKG_OUT_ALIGN);

	return n > 0 ? n : TOKG_OUT_ALIGN;
}

TOKG_FN uint64_t
tokg_slot_of(const struct tokg_geometry *g, uint32_t producer, uint32_t slot)
{
	return (uint64_t)producer * g->slots + slot;
}

TOKG_FN uint64_t
tokg_back_at(const struct tokg_geometry *g, uint32_t producer)
{
	return g->back_off + producer * g->back_stride;
}

TOKG_FN uint64_t
tokg_done_at(const struct tokg_geometry *g, uint32_t producer, uint32_t slot)
{
	return tokg_back_at(g, producer) + sizeof(struct tokg_back) + 8ull * slot;
}

TOKG_FN uint64_t
tokg_ended_at(const struct tokg_geometry *g, uint32_t producer, uint32_t lane)
{
	return tokg_done_at(g, producer, g->slots) + 8ull * lane;
}

TOKG_FN uint64_t
tokg_log_at(const struct tokg_geometry *g, uint32_t producer, uint64_t position)
{
	return tokg_ended_at(g, producer, g->lanes) + 8 * (position & (g->log - 1));
}

TOKG_FN uint32_t
tokg_lap_of(const struct tokg_geometry *g, uint64_t position)
{
	return 1 + (uint32_t)(position / g->log % TOKG_LAP_MAX);
}

TOKG_FN uint32_t
tokg_turn_after(uint32_t turn)
{
	return turn == TOKG_TURN_MAX ? 1 : turn + 1;
}

TOKG_FN uint64_t
tokg_ask_at(const struct tokg_geometry *g, uint32_t producer, uint32_t lane)
{
	return g->ask_off + 8 * ((uint64_t)producer * g->lanes + lane);
}

TOKG_FN uint64_t
tokg_opened_at(const struct tokg_geometry *g, uint32_t producer, uint32_t lane)
{
	return g->opened_off + 8 * ((uint64_t)producer * g->lanes + lane);
}

/* Bytes of the back area up to the lanes, and of all of it. */
TOKG_FN uint32_t
tokg_back_bytes(const struct tokg_geometry *g, bool with_lanes)
{
	const uint32_t words = g->slots + (with_lanes ? g->lanes + g->log : 0);

	return (uint32_t)sizeof(struct tokg_back) + 8 * words;
}

TOKG_FN uint64_t
tokg_hdr_at(const struct tokg_geometry *g, uint32_t producer, uint32_t slot)
{
	return g->hdr_off + sizeof(struct tokg_hdr) * tokg_slot_of(g, producer, slot);
}

TOKG_FN uint64_t
tokg_claim_at(const struct tokg_geometry *g, uint32_t producer, uint32_t slot)
{
	return g->claim_off + 8 * tokg_slot_of(g, producer, slot);
}

TOKG_FN uint64_t
tokg_payload_at(const struct tokg_geometry *g, uint32_t producer, uint32_t slot)
{
	return g->payload_off + g->slot_bytes * tokg_slot_of(g, producer, slot);
}
