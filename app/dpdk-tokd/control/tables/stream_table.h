/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's streams. */
#pragma once

#include "datapath/stream/stream.h"

/* Memory is on `node`. NULL with a message logged. */
struct tokd_streams *tokd_streams_create(
	uint32_t n, uint32_t worker, int node, uint64_t open_ticks, uint64_t finished_ticks);
void tokd_streams_free(struct tokd_streams *t);
