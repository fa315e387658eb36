/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device `cpu` with blocks of 256 threads, as a GPU has them: each block is fibers of a thread
 * of its own. So the consumer is run whose threads meet at barriers and divide the work.
 * TOKD_GPU_ORDER: enum fibers_order, 0 unless given.
 *
 * With graphs the first thread is the scheduler's block, and the workers run its children.
 */
#include "../../../../lib/gpu_sink/kernel/device_cpu.cpp"

#include <mix.h>

#include "block.h"
#include "graph_rules.h"

#define CHECK_BLOCKS 3
#define ROWS_BLOCKS 2

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

/* A child that is launched and that no worker has yet. */
struct launched {
	enum tokg_graph kind;
	uint32_t number;
};

/* Of a device's threads; one device runs at a time. */
struct {
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
	graph_rules rules;
	launched waiting[120];
	uint32_t n_waiting, n_workers; /* workers that have begun and not ended */
	bool ended;		       /* the scheduler: no more children come */
} graphs;

enum kernel { KERNEL_SCHEDULE, KERNEL_CHECK, KERNEL_ROWS, KERNEL_STEP };

struct grid {
	const thread *t;
	enum kernel kernel;
	uint32_t number, block, blocks;
	fibers_how how;
	union {
		tokg_scheduler scheduler;
		tokg_hand hand;
	} shared;
};

void
grid_fiber(uint32_t tid, void *arg)
{
	grid *const k = (grid *)arg;
	cpu_device *const d = k->t->device;
	struct tokg_child *const child = &d->schedule->child[k->number];
	tokg_block b = fibers_block(tid, k->how.n);

	b.encodes = b.polite = true;
	switch (k->kernel) {
	case KERNEL_SCHEDULE:
		tokg_schedule_run(&d->consumer, &b, d->schedule, &k->shared.scheduler, NULL);
		break;
	case KERNEL_CHECK:
		tokg_child_check(&d->consumer, &b, child, &k->shared.hand, k->block, k->blocks);
		break;
	case KERNEL_ROWS:
		tokg_child_rows(&d->consumer, &b, child, &k->shared.hand, k->block, k->blocks);
		break;
	case KERNEL_STEP:
		tokg_step(&d->consumer, &b, d->schedule);
	}
}

void
fibers_fail(uint32_t block, const char *report)
{
	printf("Bail out! block %u: %s\n", block, report);
	fflush(stdout);
	_exit(1);
}

enum fibers_order
order_asked()
{
	const char *const order = getenv("TOKD_GPU_ORDER");

	return (fibers_order)(order != NULL ? atoi(order) : FIBERS_FORWARD);
}

/* The blocks of a kernel, one after the other. */
void
grid_run(const thread *t, enum kernel kernel, uint32_t number, uint32_t blocks)
{
	static thread_local grid k;
	char report[FIBERS_TEXT];

	for (uint32_t i = 0; i < blocks; i++) {
		memset(&k, 0xa5, sizeof(k)); /* nothing may depend on what a block finds */
		k.t = t;
		k.kernel = kernel;
		k.number = number;
		k.block = i;
		k.blocks = blocks;
		k.how.n = FIBERS_MAX;
		k.how.order = order_asked();
		k.how.seed = number * 1000ull + i;
		if (!fibers_run(&k.how, grid_fiber, &k, report))
			fibers_fail(i, report);
	}
}

void
child_run(const thread *t, launched child)
{
	if (child.kind == TOKG_GRAPH_STEP) {
		grid_run(t, KERNEL_STEP, child.number, 1);
		return;
	}
	grid_run(t, KERNEL_CHECK, child.number, CHECK_BLOCKS);
	grid_run(t, KERNEL_ROWS, child.number, ROWS_BLOCKS);
}

/* Runs children, in any order, until the scheduler has ended. */
void
children_run(const thread *t)
{
	uint64_t dice = t->index;

	pthread_mutex_lock(&graphs.lock);
	graphs.n_workers++;
	pthread_cond_broadcast(&graphs.changed);
	for (;;) {
		launched child;
		uint32_t i;

		while (graphs.n_waiting == 0 && !graphs.ended)
			pthread_cond_wait(&graphs.changed, &graphs.lock);
		if (graphs.n_waiting == 0)
			break;
		i = (uint32_t)dice_throw(&dice) % graphs.n_waiting;
		child = graphs.waiting[i];
		graphs.waiting[i] = graphs.waiting[--graphs.n_waiting];
		pthread_mutex_unlock(&graphs.lock);
		child_run(t, child);
		pthread_mutex_lock(&graphs.lock);
		graphs.rules.ended(child.kind, child.number);
		pthread_cond_broadcast(&graphs.changed);
	}
	graphs.n_workers--;
	pthread_cond_broadcast(&graphs.changed);
	pthread_mutex_unlock(&graphs.lock);
}

/* Executions of the scheduler, each when all children of the one before have ended. */
void
scheduler_run(const thread *t)
{
	bool again;

	pthread_mutex_lock(&graphs.lock);
	while (graphs.n_workers < t->device->workers)
		pthread_cond_wait(&graphs.changed, &graphs.lock);
	do {
		if (!graphs.rules.begin())
			fibers_fail(0, "children of the last execution run on");
		pthread_mutex_unlock(&graphs.lock);
		grid_run(t, KERNEL_SCHEDULE, 0, 1);
		pthread_mutex_lock(&graphs.lock);
		while (graphs.rules.running > 0)
			pthread_cond_wait(&graphs.changed, &graphs.lock);
		again = graphs.rules.again;
	} while (again);
	t->device->d.launches = t->device->schedule->launches[TOKG_GRAPH_EMBED] +
				t->device->schedule->launches[TOKG_GRAPH_STEP];
	t->device->d.executions = t->device->schedule->executions;
	graphs.ended = true;
	pthread_cond_broadcast(&graphs.changed);
	while (graphs.n_workers > 0)
		pthread_cond_wait(&graphs.changed, &graphs.lock);
	graphs.ended = false; /* for the next */
	pthread_mutex_unlock(&graphs.lock);
}

void
thread_run(const thread *t)
{
	char report[FIBERS_TEXT];
	block_of k = {};

	if (t->device->schedule != NULL) {
		if (t->index == 0)
			scheduler_run(t);
		else if (t->index <= t->device->workers)
			children_run(t);
		fibers_free();
		return;
	}
	k.t = t;
	/* A scanner without workers is one thread, as on a CPU alone. */
	k.how.n = t->device->workers > 0 ? FIBERS_MAX : 1;
	k.how.order = order_asked();
	k.how.seed = t->device->d.incarnation * 1000ull + t->index;
	if (!fibers_run(&k.how, fiber, &k, report))
		fibers_fail(t->index, report);
	fibers_free();
}

} // namespace

extern "C" uint32_t
tokg_graph_launch(void *const *, enum tokg_graph kind, uint32_t number)
{
	uint32_t error;

	pthread_mutex_lock(&graphs.lock);
	error = graphs.rules.launch(kind, number);
	if (error != GRAPH_FINE)
		fibers_fail(0, "a launch breaks the rules");
	graphs.waiting[graphs.n_waiting++] = {kind, number};
	pthread_cond_broadcast(&graphs.changed);
	pthread_mutex_unlock(&graphs.lock);
	return error;
}

extern "C" uint32_t
tokg_graph_relaunch(void)
{
	uint32_t error;

	pthread_mutex_lock(&graphs.lock);
	error = graphs.rules.relaunch();
	pthread_mutex_unlock(&graphs.lock);
	return error;
}
