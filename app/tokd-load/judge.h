/* SPDX-License-Identifier: BSD-3-Clause */
/* What is wrong with an answer, in words; NULL: nothing. Outside of what is timed. */
#ifndef TOKD_LOAD_JUDGE_H
#define TOKD_LOAD_JUDGE_H

#include <tokd/client.h>

#include "slices.h"

/* How a request ended. */
const char *judge_status(enum tokd_status status);
/* The ids that came, against those that the slice must give. */
const char *judge_ids(const struct slice *slice, const uint32_t *ids, uint32_t n_ids);

#endif
