/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the stress test share. */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <mix.h>
#include "kernel/device.h"
#include "request_text.h"
#include "transport/transport.h"

#ifdef TOKG_INJECT
#define INJECT 1
#else
#define INJECT 0
#endif

#define PRODUCERS 3
#define SLOTS 8
#define LANES 4
#define LOG 32 /* words; a quota of 7 */
#define DIM 4
#define N_IDS 997
#define STOP_ID 5
#define OUT_BYTES (1u << 16)

#ifdef __cplusplus
extern "C" {
#endif

static inline uint32_t
below(uint64_t *dice, uint32_t n)
{
	return (uint32_t)((dice_throw(dice) >> 32) * n >> 32);
}

/* Serials of producer i are i + PRODUCERS, i + 2 * PRODUCERS, ... */
static inline uint32_t
id_of(uint64_t serial, uint32_t i)
{
	return (uint32_t)((serial * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull) >> 40) %
	       N_IDS;
}

/* True: the text is posted as its bytes, and its ids are those of request_text(). */
static inline bool
is_raw(uint64_t serial)
{
	return id_of(serial, UINT32_MAX) % 8 == 0;
}

/* What its producer knows of a text. */
struct fate {
	uint32_t ids;
	uint32_t failed; /* the epoch in which it failed, or 0 */
	bool ended, dropped;
};

/* What the agent has delivered of it. */
struct delivered {
	uint64_t index_sum;
	uint32_t ids, lasts, epoch;
	bool epochs; /* its slots were done in several epochs: ids may have come again */
};

struct stress {
	bool any_order, check, late, heads, external;
	uint32_t lanes;
	uint64_t texts, seed;
	struct tokg_device *d;
	struct producer *producer[PRODUCERS];
	struct fate *fate;	     /* by serial */
	struct delivered *delivered; /* by serial */
	/* atomic */
	uint64_t n_wrong, n_misled; /* of n_wrong: rows and deliveries */
	uint64_t n_begun;	    /* texts */
	uint64_t n_restarts, n_engines;
	bool finished;
};
extern struct stress w;
#define SERIALS (PRODUCERS * (w.texts + 256)) /* all are below */

/* The test goes on after an error: more errors say more. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bail_out(const char *why) __attribute__((noreturn));
uint64_t load(uint64_t offset); /* of the region */
uint64_t texts_begun(void);

/* stress_agent.c: tokd-gpu, as far as producers see it, and a subscriber that holds outputs. */
void agent_step(void);
/* Reads the next entry of the outbox. False: there is none. */
bool agent_take(void);
/* Ends the producer's epoch. Its writes must have ended. */
void agent_end(uint32_t producer);
/* Returns the successor's epoch, or 0: not yet. */
uint32_t agent_grant(uint32_t producer);
void agent_judge(void);

/* nic.c: a transport whose writes land late. */
struct piece {
	uint64_t *to, value;
};
struct nic {
	struct tokg_transport t; /* first */
	uint64_t dice;
	struct piece *wire; /* writes in flight, the oldest first */
	uint32_t flying;
	uint32_t before_read; /* of these: a READ waits for them */
	bool is_broken, read_asked;
	uint64_t *copy; /* of the back area */
};
void nic_make(struct nic *n, uint32_t producer, uint64_t seed);
/* A connection in a new epoch. */
void nic_connect(struct nic *n, uint32_t epoch);
/* Up to `most` writes land. */
void nic_land(struct nic *n, uint32_t most);

/* producer.c: a worker: token ring, sink, and texts. */
struct producer *producer_make(uint32_t number, uint64_t seed);
/* A turn. Returns false when all its texts have ended and it begins no more. */
bool producer_step(struct producer *p);
void producer_break(struct producer *p);   /* the connection */
void producer_regrant(struct producer *p); /* another agent comes */
void producer_die(struct producer *p);	   /* a successor comes */
void producer_print(const struct producer *p);
/* At the end: no lane is lost. */
void producer_judge_lanes(struct producer *p);
/* When the consumer has ended: each text has been delivered once, or has failed. */
void producer_judge(struct producer *p);

/* engine.c: an external engine. */
void engine_begin(void);
/* Offers an entry of the outbox, before its outputs are released. */
void engine_offer(const struct tokg_out_entry *entry);
/* Puts an id into some lanes. Or the engine dies, and another one comes. */
void engine_step(void);

/* consumer.cpp: the consumer's source, and its threads. */
/* Before the start: done words exist twice; laps of the log and turns of lanes wrap soon. */
void consumer_prepare(struct tokg_device *d);
/* Its threads end, each at some access, until it is started again. */
void consumer_kill(struct tokg_device *d);
bool consumer_is_dying(void);
bool consumer_has_ended(void);
void consumer_restart(struct tokg_device *d);
void consumer_stop(struct tokg_device *d);
/* The two copies of the done words are equal. */
bool consumer_copies_equal(struct tokg_device *d);

#ifdef __cplusplus
}
#endif
