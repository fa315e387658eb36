/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that an external engine shares with the consumer (tokd/engine.h), after the outputs:
 *
 *   ids     a page of outputs has the rows of at most ids_of_page ids, and as many words here. So
 *           rows and ids are released together
 *   shown   lanes, as the consumer shows them
 *   made    ids and ends, as the engine writes them. On a CPU a memfd of its own: the rest is
 *           sealed against writing
 */
#pragma once

#include <tokd/engine.h>

#include "ring/gpu_ring.h"

struct tokg_engine_area {
	uint32_t lanes, room, ids_of_page;
	uint64_t ids_off, shown_off, made_off; /* made_off is the end of what is sealed */
	uint64_t made_bytes;
	uint64_t ids_in_made; /* where the engine's ids begin in `made` */
};

/* Of geometry with lanes. */
TOKG_FN struct tokg_engine_area
tokg_engine_area_plan(const struct tokg_geometry *g)
{
	const uint64_t outputs = g->producers * g->out_bytes;
	struct tokg_engine_area a;

	a.lanes = g->producers * g->lanes;
	/* The sink grants a lane fewer ids at a time than its part of the log has words. */
	a.room = 1;
	while (a.room < g->log / g->lanes)
		a.room *= 2;
	a.ids_of_page = (TOKG_OUT_ALIGN + g->row_bytes - 1) / g->row_bytes;
	a.ids_off = tokg_align(outputs, TOKG_PAGE);
	a.shown_off =
		tokg_align(a.ids_off + outputs / TOKG_OUT_ALIGN * a.ids_of_page * 4, TOKG_PAGE);
	a.made_off = tokg_align(a.shown_off + a.lanes * sizeof(struct tokd_lane_shown), TOKG_PAGE);
	a.ids_in_made = a.lanes * sizeof(struct tokd_lane_made);
	a.made_bytes = tokg_align(a.ids_in_made + 4ull * a.lanes * a.room, TOKG_PAGE);
	return a;
}

/* Where the id of the row at this offset of the outputs is, which begins a request. */
TOKG_FN uint64_t
tokg_engine_ids_at(const struct tokg_engine_area *a, uint64_t offset)
{
	return a->ids_off + offset / TOKG_OUT_ALIGN * a->ids_of_page * 4;
}
