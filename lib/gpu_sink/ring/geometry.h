/* SPDX-License-Identifier: BSD-3-Clause */
/* The geometry of a GPU ring: laid out by the agent, proved by whoever is told one. Set-up only. */
#ifndef TOKG_GEOMETRY_H
#define TOKG_GEOMETRY_H

#include <stdbool.h>

#include "error.h"
#include "gpu_ring.h"

/*
 * From producers, slots, slot_bytes, flags, kind, dtype, dim, n_ids, n_positions and out_bytes the
 * rest. False and `err`, with the limit, where one of them is out of it.
 */
bool tokg_geometry_fill(struct tokg_geometry *g, struct tokg_error *err);

/* Is it what tokg_geometry_fill makes of its first half, and is the region at most `bytes`? */
bool tokg_geometry_proved(const struct tokg_geometry *g, uint64_t bytes, struct tokg_error *err);

#endif
