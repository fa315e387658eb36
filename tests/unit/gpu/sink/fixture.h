/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A token ring, a GPU ring, a transport between them that can break at every point, and a consumer
 * that holds the sink to the protocol: order of slots, tickets, epochs, check words, outputs, and
 * each id of each text. Payloads are fetched from the token ring when they are delivered, not when
 * they are posted, and what the cursor has passed is overwritten: a sink that releases ring space
 * too early fails the test.
 */
#pragma once

#include <stdbool.h>

#include "test.h"
#include "ring/check.h"
#include "ring/geometry.h"
#include "sink/sink.h"

#define SLOTS_MOST 64
#define SLOT_BYTES TOKG_SLOT_BYTES_MIN
#define N_VOCABS 2
#define NO_VOCAB 0xdeadu
#define QUEUE_MOST 16
#define POSTS_KNOWN 4096
#define BACK_MOST 256
#define LANES_MOST 4
#define FAILED_EPOCH UINT32_MAX

/* A text as it should be: id i of text s is id_of(s, i). */
struct text {
	uint32_t vocab;
	uint32_t published; /* ids in the token ring */
	uint32_t total;	    /* LAST comes with so many */
	uint32_t room;
	uint32_t *seen; /* [room]: epoch in which each id was embedded last, or FAILED_EPOCH */
	uint32_t first_seen, last_seen; /* epoch in which that flag was, likewise */
	bool batch_failed;
	bool must_fail, has_failed; /* as the consumer said; as the sink reported */
	bool is_open;
	bool is_bytes, finished, came_back; /* its bytes are in the ring; as the sink reported */
};

/* The consumer did not see what was posted: it comes once more. */
static inline bool
saw_another(enum tokg_status status)
{
	return status == TOKG_BADSUM || status == TOKG_STALE;
}

struct work {
	uint32_t slot, bytes;
	const uint8_t *payload;
	struct tokg_hdr hdr;
	bool payload_is_there;
};

/* Where the next operation of the transport breaks the connection. */
enum fault {
	NO_FAULT,
	POST_NOTHING, /* post fails; nothing of it arrives */
	POST_PAYLOAD, /* ... its payload does */
	POST_ALL,     /* ... it is published all the same */
	FAIL_FLUSH,
	FAIL_POLL,
	FAIL_READ,
};

struct world {
	struct tokg_transport t;
	struct tokg_geometry g;
	struct tokg_sink *sink;
	struct tokg_sink_config config;
	uint64_t now;
	/* the token ring */
	uint8_t *ring;
	uint64_t mask, head, tail;
	struct text *text;
	uint32_t n_texts, texts_room;
	uint64_t n_records;
	uint32_t shed_below; /* texts: what was not embedded never is */
	/* the GPU ring, this producer's */
	struct tokg_hdr hdr[SLOTS_MOST];
	uint8_t payload[SLOTS_MOST][SLOT_BYTES];
	uint64_t done[SLOTS_MOST]; /* of w->g.slots; then ended[] and log[] */
	uint64_t ask[LANES_MOST];
	uint32_t n_asks;
	uint64_t log_at; /* where the next token goes */
	struct tokg_back back;
	uint64_t last_epoch;
	/* outputs, by post */
	uint64_t n_published;
	struct {
		uint64_t from, end;
		bool done;
	} post[POSTS_KNOWN];
	uint64_t post_of[SLOTS_MOST];
	/* the transport */
	struct work queue[QUEUE_MOST];
	uint32_t n_queued, n_flushed;
	bool is_broken, read_asked, read_is_old;
	struct {
		struct tokg_back back;
		uint64_t done[SLOTS_MOST];
	} snapshot, copy;
	enum fault fault;
	bool agent_is_gone; /* reconnect says never */
	uint32_t reconnects_to_wait;
	enum tokg_order last_order;
	/* what was seen */
	uint64_t n_failed, n_done_calls, n_slots_done;
	uint32_t n_tokens, n_ended;
	struct {
		uint32_t lane, index, id;
		uint64_t serial;
	} last_token;
	enum tokg_end last_end;
	uint64_t last_ended; /* serial */
	uint64_t last_failed;
	uint32_t came[BACK_MOST], n_came; /* texts whose bytes came back, and have no ids yet */
	struct tokg_hdr last;		  /* delivered last */
};

static const uint32_t vocabs[N_VOCABS] = {0x11111111, 0x22222222};

static inline uint32_t
id_of(uint64_t serial, uint32_t i)
{
	return (uint32_t)(serial * 2654435761u + i * 40503u) & 0xffffu;
}

/* fixture.c: world_make with a ring of ring_bytes, first tickets `done` + 1. */
struct world *world_make(uint32_t slots, uint64_t ring_bytes, uint64_t out_bytes, uint64_t tickets);
/* With LANES_MOST lanes, and a log of LOG_WORDS. */
#define LOG_WORDS 16
struct world *world_with_lanes(uint32_t slots);
void world_free(struct world *w);
/* A new sink with w->config. */
void new_sink(struct world *w);
/* Another agent after a dead one: new memory, a new epoch. The sink does not know yet. */
void world_renew(struct world *w, uint64_t tickets);
/* The same, with tickets from 0, and the sink is attached to it. */
void new_agent(struct world *w);
/* The connection is lost: tokg_sink_recover gives up, and says why. */
void give_up(struct world *w, const char *why);
/* Without a transport: all that the sink has not finished is passed over. */
void shed(struct world *w);
/* One turn of the sink, then whatever the cursor has passed is checked and overwritten. */
bool turn(struct world *w, bool idle);
/* Turns in which all is delivered, and time for a read goes by. */
void turns(struct world *w, uint32_t n);
/* Deliver at most so many posts of those that were flushed; without the last one's header. */
void deliver(struct world *w, uint32_t most);
void deliver_payload(struct world *w);
bool is_pending(const struct world *w, uint32_t slot);
/* Consume it, with this status. Whatever the protocol says of it is asserted. */
void consume(struct world *w, uint32_t slot, enum tokg_status status);
void consume_all(struct world *w, enum tokg_status status);
/* The subscriber gives back the outputs of at most so many posts, in order, that are done. */
void release(struct world *w, uint32_t most);
/* Deliver, consume well, release, turn, until the sink is idle. */
void settle_all(struct world *w);

/* texts.c */
/* A record of `count` ids more of text `serial`; the last one with `flags` LAST or ABORT, and
 * perhaps KEYS. */
bool publish(struct world *w, uint32_t serial, uint32_t count, uint32_t flags);
/* A record of `count` bytes of decoded text, of no text above. False: the ring is full. */
bool publish_decoded(struct world *w, uint32_t count);
/* A text whose record has its bytes. False: the ring is full. */
bool publish_bytes(struct world *w, uint32_t total);
/* The consumer does not encode it. */
static inline bool
is_for_cpu(uint64_t serial)
{
	return serial % 4 == 0;
}
/* The ids of texts that came back, as far as there is room. */
void publish_back(struct world *w);
/* A TEXT slot was consumed: checks its bytes, and notes that they were embedded. */
void embedded_text(struct world *w, const struct tokg_hdr *h, const uint8_t *bytes,
	enum tokg_status status, bool is_final);
uint32_t new_text(struct world *w, uint32_t vocab, uint32_t total);
/* Would such a record fit now? */
bool has_room(const struct world *w, uint32_t count);
/* A request of a slot was consumed: checks its ids, and notes that they were embedded. */
void embedded(struct world *w, uint64_t serial, uint32_t first, uint32_t n, const uint32_t *ids,
	uint32_t flags, enum tokg_status status, bool is_final);
/* The cursor has passed what lies before it: all of that is embedded, or failed. */
void check_passed(struct world *w);
static inline uint8_t
byte_of(uint64_t serial, uint32_t i)
{
	return (uint8_t)id_of(serial, i);
}
uint64_t record_bytes(uint32_t count);
/* With TOKD_REC_KEYS, of keys behind it, which are KEY_BYTE. */
uint64_t keys_bytes(uint32_t flags);
#define KEY_BYTE 0xa5
