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

void
give_sink(void)
{
	struct tokg_error err = {""};

	memset(&gpu, 0, sizeof(gpu));
	gpu.back.epoch = 1;
	gpu.t = (struct tokg_transport){.ops = &test_ops,
		.epoch = 1,
		.back = &gpu.back,
		.done = gpu.done,
		.geometry = {.producers = 1,
			.slots = GPU_SLOTS,
			.slot_bytes = TOKG_SLOT_BYTES,
			.kind = TOKG_KIND_WORD,
			.dtype = TOKG_F32,
			.dim = 8,
			.n_ids = 1 << 20,
			.out_bytes = GPU_OUTPUTS * TOKG_OUT_ALIGN}};
	assert_true(tokg_geometry_fill(&gpu.t.geometry, &err));
	if (!tokd_sink_make(&fx->w, &gpu.t, &err))
		fail_msg("%s", err.text);
}

void
turns(uint32_t n)
{
	for (; n > 0; n--) {
		tokd_worker_turn(&fx->w);
		rte_delay_us_block(10);
	}
}
