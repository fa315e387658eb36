/* SPDX-License-Identifier: BSD-3-Clause */
/* What a worker does now and then, between bursts (housekeeping.c). */
#ifndef TOKD_HOUSEKEEPING_H
#define TOKD_HOUSEKEEPING_H

#include "datapath/worker.h"

/* Readers, time limits, what waited for room in the ring. now: TSC. Bounded per call. */
void tokd_housekeeping(struct tokd_worker *w, uint64_t now);

/* The end: fail every open stream with TOKD_R_SHUTDOWN, and tell the clients. */
void tokd_shutdown(struct tokd_worker *w);

#endif
