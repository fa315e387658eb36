/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU sink whose tokd-gpu was stopped: it took the connection, and nothing happens behind it. The
 * sink and the control thread's part are the product's own; no agent answers when they look for
 * another.
 */
#include <stdlib.h>

#include <ring/geometry.h>

#include "control/app.h"
#include "control/gpu_sink_control.h"
#include "seams.h"
#include "sim.h"

#define SLOTS 64

static struct {
	struct tokg_transport t;
	struct tokg_back back;
	uint64_t done[SLOTS];
} gpu;

static int
post(struct tokg_transport *t, uint32_t slot, const void *payload, uint32_t bytes,
	const struct tokg_hdr *hdr, enum tokg_order order)
{
	return 1;
}

static int
nothing(struct tokg_transport *t)
{
	return 0;
}

static int
read_back(struct tokg_transport *t)
{
	t->n_reads++;
	return 1;
}

static void
end(struct tokg_transport *t)
{
}

static const struct tokg_transport_ops ops = {.name = "stopped",
	.post = post,
	.flush = nothing,
	.poll = nothing,
	.read_back = read_back,
	.close = end};

void
sink_make(struct appliance *a)
{
	struct tokg_error err;

	gpu.back = (struct tokg_back){.epoch = 1};
	gpu.t = (struct tokg_transport){.ops = &ops,
		.epoch = 1,
		.back = &gpu.back,
		.done = gpu.done,
		.link = -1,
		.geometry = {.producers = 1,
			.slots = SLOTS,
			.slot_bytes = TOKG_SLOT_BYTES,
			.kind = TOKG_KIND_WORD,
			.dtype = TOKG_F32,
			.dim = 8,
			.n_ids = 1 << 16,
			.out_bytes = 1 << 24}};
	a->opt.sink_full = TOKD_SINK_SHED;
	if (!tokg_target_parse(&a->opt.sink_target, "shm:/nonexistent/tokd-gpu", &err) ||
		!tokg_geometry_fill(&gpu.t.geometry, &err) || !tokd_sink_make(&a->w, &gpu.t, &err))
		abort();
}

void
sink_control(struct appliance *a)
{
	static struct tokd_app app;

	seams_client(SEAMS_READER); /* whose clock does not jump */
	app.n_workers = 1;
	app.worker[0] = &a->w;
	if (a->w.sink != NULL)
		tokd_sinks_poll(&app);
}
