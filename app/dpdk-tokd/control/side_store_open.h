/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's side store. */
#pragma once

#include "datapath/side_store.h"

/* `bytes` of ids on `node`; 0: none. Returns 0, or -ENOMEM with a message logged. */
int tokd_side_create(
	struct tokd_side *d, uint64_t bytes, uint64_t ring_bytes, uint32_t worker, int node);
void tokd_side_destroy(struct tokd_side *d);
