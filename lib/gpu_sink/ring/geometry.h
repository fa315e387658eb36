/* SPDX-License-Identifier: BSD-3-Clause */
/* The geometry of a GPU ring: computed by the agent, validated by producers. Set-up only. */
#pragma once

#include <stdbool.h>

#include "error.h"
#include "gpu_ring.h"

/*
 * Computes the other fields from producers, slots, slot_bytes, flags, kind, dtype, dim, n_ids,
 * n_positions, lanes, log and out_bytes. False and `err` if one exceeds its limit.
 */
bool tokg_geometry_fill(struct tokg_geometry *g, struct tokg_error *err);

/*
 * The longest text of a TEXT slot, in bytes: with a row for each byte it takes a quarter of a
 * producer's outputs at most, as any slot.
 */
uint32_t tokg_text_most(const struct tokg_geometry *g);

/* Validates a received geometry: tokg_geometry_fill gives the same, and it fits `bytes`. */
bool tokg_geometry_proved(const struct tokg_geometry *g, uint64_t bytes, struct tokg_error *err);
