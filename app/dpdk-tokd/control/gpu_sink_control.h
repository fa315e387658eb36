/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's GPU sink: set-up, and recovery on the control thread. */
#pragma once

#include "datapath/loop/gpu_sink.h"

struct tokd_app;

/* Once, before the first is opened: resolve opt->sink. 0, or -errno with a message logged. */
int tokd_sinks_resolve(struct tokd_app *app);
/*
 * Open opt->sink for the worker, whose ring and vocabularies exist. The sink becomes a reader of
 * the ring, without a connection. Returns 0, or -errno with a message logged.
 */
int tokd_sink_open(struct tokd_worker *w, uint64_t instance);
/* The same with an open transport, which the sink then owns; false and `err`: it does not. */
bool tokd_sink_make(struct tokd_worker *w, struct tokg_transport *t, struct tokg_error *err);
/* After the workers have returned. */
void tokd_sink_close(struct tokd_worker *w);

/* Recovers broken sinks and logs failures. Takes at most a fraction of a second. */
void tokd_sinks_poll(struct tokd_app *app);
/* ms until the next poll; -1: no sink. */
int tokd_sinks_wait_ms(const struct tokd_app *app);
/* The number of workers with records that are not embedded. */
uint32_t tokd_sinks_busy(const struct tokd_app *app);
/* "running", "reconnecting" or "no agent" */
const char *tokd_sink_state_name(uint32_t state);
