/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine, a wire and a server in one thread, on a clock of their own. The server's ids are the
 * bytes of the text, so that a test knows what is right; its text of ids is the low byte of each.
 * Its answer to a prompt is item_id() and item_text().
 */
#pragma once

#include <stdbool.h>

#include <tokd/client_engine.h>

#include "test.h"

#define MS UINT64_C(1000000)
#define STREAMS 4096
#define ON_THE_WIRE 16384
#define DATAGRAM 2048
#define IDS_A_REPLY 344

struct stream {
	uint64_t id;
	bool open;
	uint8_t *text; /* of TEXT_MAX bytes */
	uint8_t *has;  /* of each packet */
	uint32_t ack, last, end, text_crc, total, ids_crc;
	uint32_t unreplied; /* packets in order since a reply */
	bool done, decodes;
	bool failed; /* a CANCEL came before the text was complete */
	/* Of a prompt. `total` counts bytes of the answer that were sent, `made` ids. */
	bool generates;
	struct tokd_req prompt;	    /* its last packet */
	uint8_t *answer;	    /* of ANSWER_MAX bytes */
	uint32_t made, acked, ends; /* ends: why; 0: not yet */
};

struct server {
	struct stream stream[STREAMS];
	uint32_t n, window, most_ahead;
	uint32_t payload;      /* bytes of text in each packet but the last */
	uint32_t reply_every;  /* packets of a text that is not complete; 0: each */
	uint32_t refuse_first; /* so many DATA packets are answered with `reason` */
	uint32_t reason, retry_ms;
	uint64_t cookie; /* without it no stream begins; 0: every one does */
	bool cookie_changes;
	uint32_t validates;
	bool spoil_crc;
	bool uncounted; /* the GPU makes the ids */
	uint32_t polls, last_acks;
	uint64_t make_ns, make_at; /* time between ids, and of the next; 0: all at once */
	uint32_t make_window;	   /* bytes that need not be acknowledged yet */
	uint32_t make_reply;	   /* bytes of an answer in a reply */
	bool make_pause;
	uint32_t cancels;    /* POLLs */
	uint32_t drops_held; /* so often, when a missing packet comes, it drops those behind */
};

struct datagram {
	uint64_t due;
	bool to_server;
	uint32_t len;
	uint8_t data[DATAGRAM];
};

struct world {
	struct tokd_engine *e;
	void *memory;
	struct tokd_engine_config config;
	struct server server;
	uint64_t now, delay;
	uint64_t seed;
	uint32_t lose, reorder, twice; /* of 1,000 */
	uint32_t n_wire, most_text;    /* on the wire now; packets of text at most */
	struct datagram wire[ON_THE_WIRE];
	/* Called for each reply before it leaves the server, if set. */
	void (*spoil)(struct world *w, struct datagram *d);
};

#define TEXT_MAX (200u * TOKD_WIRE_PAYLOAD)
#define ANSWER_MAX (4u << 20)

/* A request with a text of its own and a guard behind its room for ids. */
struct text {
	struct tokd_request r;
	uint8_t *bytes;
	uint32_t *room;
};

struct world *world_make(const struct tokd_engine_config *change);
void world_free(struct world *w);
uint32_t world_dice(struct world *w, uint32_t n);

/* Take on a text of `len` bytes, which may be ids; room for `max_ids`, the length if 0. */
void text_begin(struct world *w, struct text *t, uint32_t len, uint32_t flags, uint32_t max_ids);
/* And until one request finished. */
void text_run(struct world *w, struct text *t, uint32_t len, uint32_t flags, uint32_t max_ids);
/* The same for a prompt: `limit` ids, `room` bytes for the answer, TOKD_GENERATE_ROOM if 0. */
void prompt_begin(struct world *w, struct text *t, uint32_t len, uint32_t limit, uint32_t room);
/* The i-th id that the server makes, and its text: how many bytes. */
uint32_t item_id(uint32_t i);
uint16_t item_text(uint32_t i, char *text);
#define ITEM_TEXT_MAX 3000
/* Its ids are right and its guard is untouched; frees it. */
void text_right(struct text *t);
void text_free(struct text *t);

/* A test of an engine with the usual settings, in the world `w`; or with others. */
#define WORLD_TEST(name) WORLD_TEST_IN(name, world_make(NULL))
#define WORLD_TEST_IN(name, made)                                                                  \
	static void name##_in(struct world *w);                                                    \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct world *w = made;                                                            \
		name##_in(w);                                                                      \
		world_free(w);                                                                     \
	}                                                                                          \
	static void name##_in(struct world *w)

/* Send what the engine has, move the clock to what comes next, deliver it. False: nothing will. */
bool world_step(struct world *w);
/* Until `n` requests finished, which are counted only. */
void world_run(struct world *w, uint32_t n);

/* What the server answers to a packet: how many datagrams. Used for real sockets as well. */
uint32_t server_answer(struct server *s, const uint8_t *packet, uint32_t len,
	uint8_t (*out)[DATAGRAM], uint32_t *out_len, uint32_t max);
void server_free(struct server *s);
