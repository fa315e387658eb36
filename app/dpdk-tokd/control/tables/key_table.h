/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's keys of blocks (--block-keys). */
#pragma once

#include "datapath/worker.h"

/*
 * After its ring, terms and streams. Memory for each stream on the worker's node, and what readers
 * must know in the ring's header. Nothing without --block-keys. Returns 0, or -errno with a message
 * logged.
 */
int tokd_keys_open(struct tokd_worker *w);
