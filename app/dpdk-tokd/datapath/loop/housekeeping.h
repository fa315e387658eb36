/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's rare work, between bursts (housekeeping.c). */
#pragma once

#include "datapath/worker.h"

/* Readers, time limits, pending ABORT records. now: TSC. Bounded work per call. */
void tokd_housekeeping(struct tokd_worker *w, uint64_t now);

/* At the end: fails every open stream with TOKD_R_SHUTDOWN, and replies to the clients. */
void tokd_shutdown(struct tokd_worker *w);
