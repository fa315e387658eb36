/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's sources. */
#pragma once

#include "datapath/source/source.h"

/* For `streams` streams. Memory is on `node`. NULL with a message logged. */
struct tokd_sources *tokd_sources_create(uint32_t streams, uint32_t worker, int node);
void tokd_sources_free(struct tokd_sources *t);
