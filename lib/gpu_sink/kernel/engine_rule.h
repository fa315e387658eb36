/* SPDX-License-Identifier: BSD-3-Clause */
/* The rule of the engine that stands in for a model, for both ends. */
#pragma once

#include "ring/gpu_ring.h"

/*
 * The id after `last` and `before`; at first the prompt's last one (0 if its last slot has no ids)
 * and 0. `prompt`: its number of ids.
 */
TOKG_FN uint32_t
tokg_engine_next(uint32_t last, uint32_t before, uint32_t prompt, uint32_t n_ids)
{
	return (uint32_t)((3ull * last + 5ull * before + prompt + 1) % n_ids);
}
