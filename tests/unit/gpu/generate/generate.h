/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of generate know of each other. */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <mix.h>
#include "kernel/device.h"

#ifdef TOKG_INJECT
#define INJECT 1
#else
#define INJECT 0
#endif

#define PRODUCERS 3
#define SLOTS 8
#define LANES 4
#define LOG 32 /* words; a quota of 7 */
#define SLOT_BYTES TOKG_SLOT_BYTES_MIN
#define N_IDS 997
#define STOP_ID 5
#define OUT_BYTES (1u << 18)

static inline uint32_t
below(uint64_t *dice, uint32_t n)
{
	return (uint32_t)((dice_throw(dice) >> 32) * n >> 32);
}

/* Goes on: what else is wrong is worth knowing. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern uint64_t n_wrong;

/* agent_side.c: tokd-gpu as far as producers see it. */
struct agent {
	struct tokg_device *d;
	uint64_t taken; /* entries of the outbox */
	uint64_t turn[PRODUCERS], passed[PRODUCERS][SLOTS];
	uint64_t heartbeat;
	uint32_t last_epoch;
	struct engine *engine; /* external; NULL: the one that stands in */
};

uint64_t region_load(const struct tokg_device *d, uint64_t offset);
void agent_step(struct agent *a);
/* Ends the producer's epoch. Its writes in flight are gone. */
void agent_end(struct agent *a, uint32_t producer);
/* 0: not yet; else the successor's epoch. */
uint32_t agent_grant(struct agent *a, uint32_t producer);

/* side.c: a producer: token ring, sink, transport, and the texts. */
struct side *side_make(struct agent *a, uint32_t producer, uint64_t seed, bool any_order);
/* A turn. False: it is idle, with all its texts ended. `more`: it may begin texts. */
bool side_step(struct side *s, bool more);
void side_break(struct side *s);   /* the connection */
void side_regrant(struct side *s); /* its agent is gone; there is another */
void side_die(struct side *s);	   /* the worker; a successor comes */
uint64_t side_texts(const struct side *s);
/* All have ended as they must, and no lane is lost. Prints. */
void side_judge(struct side *s);
/* Of the consumer, and of external engines, so far: texts may be cut. */
extern uint64_t n_restarts, n_engines;

/* engine.c */
struct engine *engine_make(struct agent *a, uint64_t seed);
/* Each entry of the outbox, before its outputs are released. */
void engine_offer(struct engine *e, const struct tokg_out_entry *entry);
/* It puts an id into some lanes. `may_die`: or dies, and another one comes. */
void engine_step(struct engine *e, bool may_die);

/* threads.cpp */
#ifdef __cplusplus
extern "C" {
#endif
/* Before the start. As after a long life: laps of the log and turns of lanes wrap soon. */
void threads_age(struct tokg_device *d);
/* The consumer's threads end, each at some access. */
void threads_kill(struct tokg_device *d);
bool threads_ended(void);
/* When the consumer has been stopped. */
void threads_revive(void);
#ifdef __cplusplus
}
#endif
