/* SPDX-License-Identifier: BSD-3-Clause */
#include "geometry.h"

#include <inttypes.h>
#include <string.h>

#define DIM_MAX 65536
#define ROWS_MAX (1u << 24)
#define OUT_BYTES_MAX (1ull << 36)

static bool
within(struct tokg_error *err, const char *what, uint64_t n, uint64_t least, uint64_t most)
{
	if (n >= least && n <= most)
		return true;
	return tokg_wrong(err, "GPU ring: %s is %" PRIu64 ", must be %" PRIu64 " to %" PRIu64, what,
		n, least, most);
}

static bool
power_of_2(struct tokg_error *err, const char *what, uint64_t n)
{
	return (n & (n - 1)) == 0 ||
	       tokg_wrong(err, "GPU ring: %s is %" PRIu64 ", must be a power of 2", what, n);
}

static bool
lanes_are_right(const struct tokg_geometry *g, struct tokg_error *err)
{
	if (!within(err, "a producer's lanes", g->lanes, 0, TOKG_LANES_MAX))
		return false;
	if (g->lanes == 0)
		return within(err, "words of the log, without lanes,", g->log, 0, 0);
	return within(err, "words of a producer's log", g->log, TOKG_LOG_OF_LANE * g->lanes,
		       TOKG_LOG_MAX) &&
	       power_of_2(err, "words of a producer's log", g->log);
}

static bool
sizes_are_right(const struct tokg_geometry *g, struct tokg_error *err)
{
	return within(err, "the number of producers (tokd-gpu --producers)", g->producers, 1,
		       TOKG_PRODUCERS_MAX) &&
	       within(err, "the number of slots", g->slots, 2, TOKG_SLOTS_MAX) &&
	       within(err, "producers times slots (tokd-gpu --producers, --slots)",
		       (uint64_t)g->producers * g->slots, 2, TOKG_SCAN_MAX) &&
	       within(err, "a slot's payload (tokd-gpu --slot-bytes)", g->slot_bytes,
		       TOKG_SLOT_BYTES_MIN, TOKG_SLOT_BYTES_MAX) &&
	       power_of_2(err, "a slot's payload (tokd-gpu --slot-bytes)", g->slot_bytes) &&
	       within(err, "the kind of embedding", g->kind, TOKG_KIND_WORD, TOKG_KIND_BERT) &&
	       within(err, "the type of elements", g->dtype, TOKG_F32, TOKG_BF16) &&
	       within(err, "the dimension", g->dim, 1, DIM_MAX) &&
	       within(err, "the number of ids", g->n_ids, 1, ROWS_MAX) &&
	       within(err, "the number of positions", g->n_positions,
		       g->kind == TOKG_KIND_WORD ? 0 : 1, ROWS_MAX) &&
	       within(err, "the flags", g->flags, 0, TOKG_CHECKED) && lanes_are_right(g, err);
}

bool
tokg_geometry_fill(struct tokg_geometry *g, struct tokg_error *err)
{
	const uint64_t n = (uint64_t)g->producers * g->slots;
	const uint64_t lanes = (uint64_t)g->producers * g->lanes;

	if (!sizes_are_right(g, err))
		return false;
	g->row_bytes = g->dim * (g->dtype == TOKG_F32 ? 4 : 2);
	/* Four full slots must fit: with one that a subscriber keeps and one skipped before the
	 * wrap, there is still space for the next. */
	if (!within(err, "a producer's outputs (tokd-gpu --out-bytes)", g->out_bytes,
		    4 * tokg_out_bytes(g->slot_bytes / 4, g->row_bytes), OUT_BYTES_MAX) ||
		!power_of_2(err, "a producer's outputs (tokd-gpu --out-bytes)", g->out_bytes))
		return false;
	g->back_stride = tokg_align(tokg_back_bytes(g, true), TOKG_LINE);
	g->back_off = TOKG_PAGE;
	g->hdr_off = tokg_align(g->back_off + g->producers * g->back_stride, TOKG_PAGE);
	g->claim_off = tokg_align(g->hdr_off + n * sizeof(struct tokg_hdr), TOKG_PAGE);
	g->ask_off = tokg_align(g->claim_off + n * 8, TOKG_PAGE);
	g->opened_off = tokg_align(g->ask_off + lanes * 8, TOKG_PAGE);
	g->payload_off = tokg_align(g->opened_off + lanes * 8, TOKG_PAGE);
	g->region_bytes = tokg_align(g->payload_off + n * g->slot_bytes, TOKG_PAGE);
	return true;
}

uint32_t
tokg_text_most(const struct tokg_geometry *g)
{
	const uint64_t rows = g->out_bytes / 4 / g->row_bytes;
	const uint32_t most = g->slot_bytes < TOKG_TEXT_MAX ? g->slot_bytes : TOKG_TEXT_MAX;

	return rows < most ? (uint32_t)rows : most;
}

bool
tokg_geometry_proved(const struct tokg_geometry *g, uint64_t bytes, struct tokg_error *err)
{
	struct tokg_geometry own = *g;

	if (!tokg_geometry_fill(&own, err))
		return false;
	if (memcmp(&own, g, sizeof(own)) != 0)
		return tokg_wrong(err,
			"GPU ring: the agent's geometry is inconsistent: is it another version?");
	if (g->region_bytes > bytes)
		return tokg_wrong(err, "GPU ring: needs %" PRIu64 " bytes, its memory has %" PRIu64,
			g->region_bytes, bytes);
	return true;
}
