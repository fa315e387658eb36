/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's memory of names. */
#pragma once

#include "datapath/stream/done_names.h"

/*
 * On `node`. A name that goes within `horizon_ms` of its text's end is counted. Returns 0, or
 * -errno with a message logged.
 */
int tokd_names_create(struct tokd_names *t, uint64_t bytes, uint32_t worker, int node,
	uint64_t tsc_hz, uint32_t horizon_ms);
void tokd_names_free(struct tokd_names *t);
