/* SPDX-License-Identifier: BSD-3-Clause */
/* Describes what is wrong with an answer; NULL: nothing. Not part of the measured time. */
#pragma once

#include <tokd/client.h>

#include "slices.h"

/* The end of a request. */
const char *judge_status(enum tokd_status status);
/* Compare received ids with the expected ones of the slice. */
const char *judge_ids(const struct slice *slice, const uint32_t *ids, uint32_t n_ids);
