/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device `cpu` with blocks of 256 threads, as a GPU has them: each block is fibers of a thread
 * of its own. So the consumer is run whose threads meet at barriers and divide the work.
 * TOKD_GPU_ORDER: enum fibers_order, 0 unless given.
 */
#include "../../../../lib/gpu_sink/kernel/device_cpu.cpp"

#include "block.h"

namespace
{

struct block_of {
	const thread *t;
	fibers_how how;
	tokg_hand hand;
};

void
fiber(uint32_t tid, void *arg)
{
	block_of *const k = (block_of *)arg;
	tokg_block b = fibers_block(tid, k->how.n);

	b.index = k->t->index;
	block_run(k->t->device, &b, &k->hand);
}

void
thread_run(const thread *t)
{
	const char *const order = getenv("TOKD_GPU_ORDER");
	char report[FIBERS_TEXT];
	block_of k = {};

	k.t = t;
	/* A scanner without workers is one thread, as on a CPU alone. */
	k.how.n = t->device->workers > 0 ? FIBERS_MAX : 1;
	k.how.order = (fibers_order)(order != NULL ? atoi(order) : FIBERS_FORWARD);
	k.how.seed = t->device->d.incarnation * 1000ull + t->index;
	if (!fibers_run(&k.how, fiber, &k, report)) {
		printf("Bail out! block %u: %s\n", t->index, report);
		fflush(stdout);
		_exit(1);
	}
	fibers_free();
}

} // namespace
