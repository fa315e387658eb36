/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --sink: a worker's GPU sink (lib/gpu_sink). `state` says which thread owns it: RUNNING the
 * worker, else the control thread. So the worker keeps polling its queue while the sink recovers;
 * meanwhile the sink's cursor does not move, the token ring fills, and clients' windows close.
 *
 * With --sink-full=shed they do not: a sink that keeps the ring full for longer than a reader may
 * (TOKD_HOLD_WINDOW_MS) is BROKEN, then LOST; and while it is LOST, all that it has not finished is
 * passed over whenever the ring is full.
 *
 *             tokg_sink_poll fails              recovery is impossible
 *   RUNNING ─────────────────────────▶ BROKEN ─────────────────────────▶ LOST
 *      ▲  ▲      reconnected              │                                │
 *      │  └───────────────────────────────┘      another transport         │
 *      └───────────────────────────────────────────────────────────────────┘
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sink/sink.h>

#include "datapath/stream/generate.h"

struct tokd_worker;

enum tokd_sink_state { TOKD_SINK_RUNNING = 0, TOKD_SINK_BROKEN, TOKD_SINK_LOST };

struct tokd_sink {
	/* hot */
	struct tokg_sink *sink;
	_Atomic uint32_t state;	      /* enum tokd_sink_state */
	_Atomic uint32_t last_status; /* enum tokg_status of the last failed text */
	struct tokd_answers answers;
	/* control thread */
	struct tokg_transport *transport; /* NULL while LOST */
	uint64_t next_try_ms;
	uint64_t n_failed, next_log_ms; /* failed texts already logged */
	uint64_t n_shed, next_shed_log_ms;
	bool logged;   /* BROKEN, or the reason of LOST ... */
	char why[256]; /* ... which was this */
	/* for the telemetry thread */
	pthread_mutex_t lock;
	char path[256]; /* the transport chosen, and why */
	const char *kind;
	uint32_t producer, epoch, slots, slot_bytes;
	uint64_t out_bytes;
};

/* Once per turn. `idle`: no packet was received, and no text waits. */
void tokd_sink_poll(struct tokd_worker *w, bool idle);
/* In housekeeping: copies the sink's counters to the worker's. */
void tokd_sink_count(struct tokd_worker *w);
/* In housekeeping: with --sink-full=shed ends a sink that has kept the ring full for too long. */
void tokd_sink_check_hold(struct tokd_worker *w, uint64_t now);
/* With --sink-full=shed, any thread: has it? */
bool tokd_sink_is_overdue(const struct tokd_worker *w, uint64_t now);
/* The ring's callback. */
bool tokd_sink_shed(void *worker);
/* Callbacks of the sink; `worker` is its owner. */
void tokd_sink_failed(void *worker, uint64_t serial, enum tokg_status status);
void tokd_sink_done(void *worker, uint64_t t_post, uint64_t now);
