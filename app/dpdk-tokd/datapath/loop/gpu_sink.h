/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --sink: what a worker has of the GPU sink (lib/gpu_sink). One thread at a time has it, as `state`
 * says: the worker while it runs, the control thread while it does not. So the worker goes on
 * polling its queue whatever happens; meanwhile the sink's cursor stands, the token ring fills, and
 * clients' windows close.
 *
 *             tokg_sink_turn says so            recovery is impossible
 *   RUNNING ─────────────────────────▶ BROKEN ─────────────────────────▶ LOST
 *      ▲  ▲      reconnected              │                                │
 *      │  └───────────────────────────────┘      another transport         │
 *      └───────────────────────────────────────────────────────────────────┘
 */
#ifndef TOKD_GPU_SINK_H
#define TOKD_GPU_SINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sink/sink.h>

struct tokd_app;
struct tokd_worker;

enum tokd_sink_state { TOKD_SINK_RUNNING = 0, TOKD_SINK_BROKEN, TOKD_SINK_LOST };

struct tokd_sink {
	/* hot */
	struct tokg_sink *sink;
	_Atomic uint32_t state;	      /* enum tokd_sink_state */
	_Atomic uint32_t last_status; /* enum tokg_status of the text that failed last */
	/* control thread */
	struct tokg_transport *transport; /* NULL while LOST */
	uint64_t next_try_ms;
	uint64_t n_failed, next_log_ms; /* texts that failed, as logged */
	bool told;			/* that it is BROKEN, or why it is LOST */
	/* for telemetry, whose thread is another */
	pthread_mutex_t lock;
	char path[256]; /* which way was taken, and why */
	const char *kind;
	uint32_t producer, epoch, slots, slot_bytes;
	uint64_t out_bytes;
};

/* ---- Set-up and control thread (gpu_sink_control.c) ---- */

/* Once, before the first is opened: where opt->sink is. 0, or -errno with a message logged. */
int tokd_sinks_resolve(struct tokd_app *app);
/*
 * Open opt->sink for the worker, whose ring and vocabularies are there. The sink becomes a reader
 * of the ring that no connection has. Returns 0, or -errno with a message logged.
 */
int tokd_sink_open(struct tokd_worker *w, uint64_t instance);
/* The same with a transport that is there: it is the sink's, unless false comes with `err`. */
bool tokd_sink_make(struct tokd_worker *w, struct tokg_transport *t, struct tokg_error *err);
/* No worker runs any more. */
void tokd_sink_close(struct tokd_worker *w);

/* Recover what is broken, log what failed. Takes at most a fraction of a second. */
void tokd_sinks_look(struct tokd_app *app);
/* In how many ms to look again; -1: there is no sink. */
int tokd_sinks_wait_ms(const struct tokd_app *app);
/* Workers whose records are not all embedded. */
uint32_t tokd_sinks_busy(const struct tokd_app *app);
/* "running", "reconnecting" or "no agent" */
const char *tokd_sink_state_name(uint32_t state);

/* ---- Hot (gpu_sink.c) ---- */

/* Once a turn. `idle`: it took no packet. */
void tokd_sink_turn(struct tokd_worker *w, bool idle);
/* In housekeeping: what the sink counted, into the worker's counters. */
void tokd_sink_count(struct tokd_worker *w);
/* As the sink calls them, with the worker. */
void tokd_sink_failed(void *worker, uint64_t serial, enum tokg_status status);
void tokd_sink_done(void *worker, uint64_t t_post, uint64_t now);

#endif
