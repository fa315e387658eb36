/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's keys of blocks (--block-keys). */
#pragma once

#include "datapath/worker.h"

/*
 * After its ring and streams. What begins a text of each vocabulary, memory for each stream on the
 * worker's node, and what readers must know in the ring's header. Nothing without --block-keys.
 * Returns 0, or -errno with a message logged.
 */
int tokd_keys_open(struct tokd_worker *w);
void tokd_keys_close(struct tokd_worker *w);
