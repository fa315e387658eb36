/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_gpu.h"

#include <ring/geometry.h>

#include "fixture.h"

struct fake_gpu gpu;

static int
test_post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order)
{
	gpu.hdr[slot] = *hdr;
	memcpy(gpu.payload[slot], payload, bytes);
	gpu.n_posts++;
	if (hdr->flags & TOKG_GENERATE) {
		gpu.lane[TOKG_FLAGS_LANE(hdr->flags)].turn = TOKG_FLAGS_TURN(hdr->flags);
		gpu.lane[TOKG_FLAGS_LANE(hdr->flags)].made = 0;
	}
	return 1;
}

static int
test_ask(struct tokg_transport *t, uint32_t lane, uint64_t word)
{
	gpu.lane[lane].ask = word;
	return 1;
}

static int
test_poll(struct tokg_transport *t)
{
	return gpu.is_broken ? -1 : 0;
}

static int
test_read_back(struct tokg_transport *t)
{
	gpu.back.heartbeat++;
	memcpy(gpu.copy, gpu.done, t->read_bytes - sizeof(gpu.back));
	t->n_reads++;
	return 1;
}

static int
test_reconnect(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err)
{
	for (uint32_t i = 0; i < GPU_SLOTS; i++)
		tickets[i] = gpu.hdr[i].ticket;
	gpu.is_broken = false;
	return 1;
}

static void
test_close(struct tokg_transport *t)
{
}

static const struct tokg_transport_ops test_ops = {
	.name = "test",
	.post = test_post,
	.ask = test_ask,
	.flush = test_poll,
	.poll = test_poll,
	.read_back = test_read_back,
	.reconnect = test_reconnect,
	.close = test_close,
};

void
embed(enum tokg_status status)
{
	for (uint32_t i = 0; i < GPU_SLOTS; i++) {
		const struct tokg_hdr *h = &gpu.hdr[i];
		const bool is_text = h->flags & TOKG_TEXT;

		if (h->ticket == (gpu.done[i] >> 8) + 1)
			gpu.done[i] = TOKG_DONE(
				h->ticket, status == TOKG_CPU && !is_text ? TOKG_OK : status);
	}
	gpu.back.released = gpu.n_posts;
}

uint32_t
may_make(uint32_t lane)
{
	const uint64_t ask = gpu.lane[lane].ask;

	return TOKG_LANE_TURN(ask) == gpu.lane[lane].turn ? TOKG_LANE_N(ask) - gpu.lane[lane].made
							  : 0;
}

bool
is_cancelled(uint32_t lane)
{
	const uint64_t ask = gpu.lane[lane].ask;

	return TOKG_LANE_TURN(ask) == gpu.lane[lane].turn && TOKG_LANE_BITS(ask) & TOKG_ASK_CANCEL;
}

void
make_token(uint32_t lane, uint32_t id)
{
	const struct tokg_geometry *g = &gpu.t.geometry;

	assert_true(may_make(lane) > 0);
	gpu.done[g->slots + g->lanes + gpu.log_head % g->log] =
		TOKG_TOKEN(id, lane, gpu.lane[lane].turn, tokg_lap_of(g, gpu.log_head));
	gpu.log_head++;
	gpu.lane[lane].made++;
}

void
end_lane(uint32_t lane, enum tokg_end how)
{
	gpu.done[gpu.t.geometry.slots + lane] =
		TOKG_LANE_WORD(gpu.lane[lane].made, gpu.lane[lane].turn, how);
}

void
give_sink(void)
{
	give_lanes(0);
}

void
give_lanes(uint32_t lanes)
{
	struct tokg_error err = {""};

	memset(&gpu, 0, sizeof(gpu));
	gpu.back.epoch = 1;
	gpu.t = (struct tokg_transport){.ops = &test_ops,
		.epoch = 1,
		.back = &gpu.back,
		.done = gpu.copy,
		.geometry = {.producers = 1,
			.slots = GPU_SLOTS,
			.slot_bytes = TOKG_SLOT_BYTES,
			.kind = TOKG_KIND_WORD,
			.dtype = TOKG_F32,
			.dim = 8,
			.n_ids = 1 << 20,
			.lanes = lanes,
			.log = lanes > 0 ? GPU_LOG : 0,
			.out_bytes = GPU_OUTPUTS * TOKG_OUT_ALIGN}};
	assert_true(tokg_geometry_fill(&gpu.t.geometry, &err));
	gpu.t.read_bytes = tokg_back_bytes(&gpu.t.geometry, true);
	if (!tokd_sink_make(&fx->w, &gpu.t, &err))
		fail_msg("%s", err.text);
}

void
attach_agent(uint32_t lanes)
{
	struct tokg_geometry *g = &gpu.t.geometry;
	struct tokg_error err = {""};

	gpu.t.epoch = gpu.back.epoch;
	gpu.back.released = gpu.n_posts = 0;
	memcpy(gpu.copy, gpu.done, sizeof(gpu.copy));
	g->lanes = lanes;
	g->log = lanes > 0 ? GPU_LOG : 0;
	if (!tokg_geometry_fill(g, &err) || !tokg_sink_attach(fx->w.sink->sink, &gpu.t, &err))
		fail_msg("%s", err.text);
	atomic_store(&fx->w.sink->state, TOKD_SINK_RUNNING);
}

void
turns(uint32_t n)
{
	for (; n > 0; n--) {
		tokd_worker_turn(&fx->w);
		rte_delay_us_block(20);
	}
}
