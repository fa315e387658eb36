/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device without a GPU: shared memory, and the consumer as threads. Set-up only; consumer.cuh
 * has the hot path.
 */
#include <fcntl.h>
#include <initializer_list>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "common.h"
#include "host_memory.h"
#include "ring/numa_place.h"

#define THREADS_MAX 258
#define ROWS_OF_JOB 64

namespace
{

struct cpu_device;

struct thread {
	pthread_t id;
	cpu_device *device;
	uint32_t index; /* 0: the scanner; above the workers: the engine */
};

struct cpu_device {
	struct tokg_device d; /* first: callers have a pointer to it */
	struct tokg_consumer consumer;
	struct tokg_view text_view;
	struct tokg_memory region, outputs, made, outbox, tables, scratch, times;
	uint64_t scratch_zero; /* bytes of scratch that are zeroed before each incarnation */
	struct tokg_scan *scan;
	struct tokg_schedule *schedule; /* NULL: no graphs */
	thread threads[THREADS_MAX];
	uint32_t n_threads, running; /* of the current incarnation */
	uint32_t ended;		     /* threads that have ended; they increase it */
	uint32_t workers;
	int first_cpu;
};

bool
tables_copy(cpu_device *c, const struct tokg_tables *t, int node, struct tokg_error *err)
{
	struct tokg_table_copy table[TOKG_TABLES];
	const uint64_t bytes = tokg_tables_plan(t, c->d.geometry.row_bytes, &c->consumer.e, table);

	if (!tokg_memory_get(&c->tables, bytes, NULL, 0, node, err))
		return false;
	for (const auto &x : table) {
		uint8_t *const to = (uint8_t *)c->tables.at + x.at;

		if (x.bytes == 0)
			continue;
		memcpy(to, x.from, x.bytes);
		*x.to = to;
	}
	return true;
}

bool
scratch_get(cpu_device *c, bool graphs, int node, struct tokg_error *err)
{
	const uint32_t blocks = c->consumer.text_view != NULL ? 1 + c->workers : 0;
	const struct tokg_scratch s = tokg_scratch_plan(&c->d.geometry, blocks, graphs);
	uint8_t *at;

	if (!tokg_memory_get(&c->scratch, s.end + sizeof(*c->scan), NULL, 0, node, err))
		return false;
	at = (uint8_t *)c->scratch.at;
	tokg_scratch_set(&c->consumer, &s, at);
	c->scan = (struct tokg_scan *)(at + s.end);
	c->schedule = graphs ? (struct tokg_schedule *)(at + s.schedule) : NULL;
	c->scratch_zero = s.found;
	return true;
}

/* By each thread of a block. */
inline void
block_run(cpu_device *c, tokg_block *b, tokg_hand *hand)
{
	b->encodes = true;
	b->polite = c->first_cpu < 0;
	if (b->index == 0)
		tokg_scanner(&c->consumer, b, c->scan);
	else if (b->index > c->workers)
		tokg_engine(&c->consumer, b);
	else
		tokg_worker(&c->consumer, b, hand);
}

#ifdef TOKG_OWN_THREADS
void thread_run(const thread *t); /* of a test, which includes this file */
#else
void
thread_run(const thread *t)
{
	struct tokg_block b = {};
	struct tokg_hand hand = {};

	b.n = b.lanes = b.teams = 1;
	b.index = t->index;
	block_run(t->device, &b, &hand);
}
#endif

void *
thread_main(void *argument)
{
	const thread *const t = (const thread *)argument;

	thread_run(t);
	__atomic_fetch_add(&t->device->ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

bool
thread_start(cpu_device *c, uint32_t i, struct tokg_error *err)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int rc;

	c->threads[i].device = c;
	c->threads[i].index = i;
	pthread_attr_init(&attr);
	if (c->first_cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(c->first_cpu + (int)i, &cpus);
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	rc = pthread_create(&c->threads[i].id, &attr, thread_main, &c->threads[i]);
	pthread_attr_destroy(&attr);
	if (rc != 0) {
		if (c->first_cpu >= 0)
			tokg_wrong(err, "consumer: thread %u on CPU %d: %s", i,
				c->first_cpu + (int)i, strerror(rc));
		else
			tokg_wrong(err, "consumer: thread %u: %s", i, strerror(rc));
		return false;
	}
	c->running++;
	return true;
}

void
stop_write(cpu_device *c, enum tokg_stop how)
{
	__atomic_store_n(&tokg_ctl_of(&c->consumer)->stop, how, __ATOMIC_RELEASE);
}

int
cpu_stop(struct tokg_device *d, enum tokg_stop how, uint32_t timeout_ms, struct tokg_error *err)
{
	const struct timespec nap = {0, 200000};
	cpu_device *const c = (cpu_device *)d;
	const uint64_t until = tokg_now() + timeout_ms * 1000000ull;

	if (c->running == 0)
		return 0;
	stop_write(c, how);
	while (__atomic_load_n(&c->ended, __ATOMIC_ACQUIRE) < c->running) {
		if (tokg_now() > until) {
			tokg_wrong(err, "consumer: %u of %u threads run on after %u ms",
				c->running - c->ended, c->running, timeout_ms);
			return -1;
		}
		nanosleep(&nap, NULL);
	}
	for (uint32_t i = 0; i < c->running; i++)
		pthread_join(c->threads[i].id, NULL);
	c->running = 0;
	return 0;
}

int
cpu_start(struct tokg_device *d, uint32_t incarnation, struct tokg_error *err)
{
	cpu_device *const c = (cpu_device *)d;
	struct tokg_error ignored;

	if (c->running > 0) {
		tokg_wrong(err, "consumer: incarnation %u runs, stop it first", d->incarnation);
		return -1;
	}
	if (!tokg_incarnation_right(d, incarnation, err))
		return -1;
	memset(c->scratch.at, 0, c->scratch_zero);
	tokg_outbox_repair(d->outbox, __atomic_load_n(&d->outbox->reserved, __ATOMIC_ACQUIRE));
	d->incarnation = c->consumer.incarnation = incarnation;
	for (uint32_t p = 0; p < d->geometry.producers; p++)
		__atomic_store_n((uint32_t *)(c->consumer.region + tokg_back_at(&d->geometry, p) +
					      offsetof(struct tokg_back, incarnation)),
			incarnation, __ATOMIC_RELEASE);
	__atomic_store_n(&tokg_ctl_of(&c->consumer)->incarnation, incarnation, __ATOMIC_RELEASE);
	tokg_owner_lives(d);
	stop_write(c, TOKG_RUN);
	c->ended = 0;
	for (uint32_t i = 0; i <= c->workers + (d->geometry.lanes > 0); i++) {
		if (!thread_start(c, i, err)) {
			cpu_stop(d, TOKG_STOP_NOW, 10000, &ignored);
			return -1;
		}
	}
	return 0;
}

int
cpu_read_outputs(struct tokg_device *d, uint64_t offset, void *to, size_t bytes)
{
	if (!tokg_in_outputs(d, offset, bytes))
		return -1;
	tokg_owner_lives(d);
	memcpy(to, (const uint8_t *)d->outputs + offset, bytes);
	return 0;
}

int
cpu_taken(struct tokg_device *d, uint64_t *n)
{
	*n = __atomic_load_n(&d->outbox->reserved, __ATOMIC_ACQUIRE);
	return 0;
}

bool
made_get(cpu_device *c, struct tokg_error *err)
{
	const struct tokg_engine_area area = tokg_engine_area_plan(&c->d.geometry);

	return tokg_memory_of_others(
		&c->made, area.made_bytes, "tokd-gpu-engine", tokg_numa_node_of(c->first_cpu), err);
}

int
cpu_renew_made(struct tokg_device *d, struct tokg_error *err)
{
	cpu_device *const c = (cpu_device *)d;

	if (!made_get(c, err))
		return -1;
	d->made_fd = c->made.fd;
	return 0;
}

bool
cpu_close(struct tokg_device *d)
{
	cpu_device *const c = (cpu_device *)d;
	struct tokg_error ignored;

	if (cpu_stop(d, TOKG_STOP_NOW, 10000, &ignored) < 0)
		return false;
	for (tokg_memory *m :
		{&c->region, &c->outputs, &c->made, &c->outbox, &c->tables, &c->scratch, &c->times})
		tokg_memory_free(m);
	free(c);
	return true;
}

const struct tokg_device_ops cpu_ops = {
	"cpu",
	cpu_start,
	cpu_stop,
	tokg_mapped_write_u64,
	tokg_mapped_write_u64,
	tokg_mapped_read,
	cpu_read_outputs,
	cpu_taken,
	cpu_renew_made,
	cpu_close,
};

bool
config_right(const struct tokg_device_config *g, struct tokg_error *err)
{
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	const long more = (long)g->workers + (g->geometry.lanes > 0);

	if (!tokg_config_proved(g, err))
		return false;
#ifndef TOKG_OWN_THREADS
	if (g->graphs)
		return tokg_wrong(err, "device cpu: it has no graphs to launch");
#endif
	if (g->workers >= THREADS_MAX - 1)
		return tokg_wrong(err, "--workers %u: at most %d with --device cpu", g->workers,
			THREADS_MAX - 2);
	if (g->first_cpu >= 0 && g->first_cpu + more >= cpus)
		return tokg_wrong(err,
			"--first-cpu %d: %ld threads (--workers, scanner%s) from there on; the last "
			"CPU is %ld",
			g->first_cpu, more + 1, g->geometry.lanes > 0 ? ", lanes" : "", cpus - 1);
	return true;
}

tokg_device_config
with_defaults(const struct tokg_device_config *asked)
{
	tokg_device_config own = *asked;

	if (own.workers == TOKG_WORKERS_DEFAULT || (own.graphs && own.workers == 0))
		own.workers = 1;
	return own;
}

bool
memory_all(cpu_device *c, const struct tokg_device_config *g, struct tokg_error *err)
{
	struct tokg_device *const d = &c->d;
	const int node = tokg_numa_node_of(g->first_cpu);
	const uint64_t entries = tokg_outbox_size(&d->geometry);
	uint64_t out = d->geometry.producers * d->geometry.out_bytes;

	if (g->external_engine) {
		out = tokg_engine_area_plan(&d->geometry).made_off;
		if (!made_get(c, err))
			return false;
	}
	/* Producers write the region; only this process writes the outputs. */
	if (!tokg_memory_get(&c->region, d->geometry.region_bytes, "tokd-gpu-ring", 0, node, err) ||
		!tokg_memory_get(
			&c->outputs, out, "tokd-gpu-outputs", F_SEAL_FUTURE_WRITE, node, err) ||
		!tokg_memory_get(&c->outbox, sizeof(*d->outbox) + entries * sizeof(tokg_out_entry),
			NULL, 0, node, err) ||
		!tables_copy(c, &g->tables, node, err) || !scratch_get(c, g->graphs, node, err) ||
		(g->time_scans &&
			!tokg_memory_get(&c->times, sizeof(*d->scan_times), NULL, 0, node, err)))
		return false;
	d->scan_times = c->consumer.scan_times = (struct tokg_scan_times *)c->times.at;
	d->outbox = (struct tokg_outbox *)c->outbox.at;
	d->outbox->n = entries;
	return true;
}

} // namespace

extern "C" bool
tokg_device_config_right(const struct tokg_device_config *asked, bool cuda, struct tokg_error *err)
{
	const tokg_device_config own = with_defaults(asked);

	return cuda ? tokg_config_proved(asked, err) : config_right(&own, err);
}

extern "C" struct tokg_device *
tokg_device_cpu(const struct tokg_device_config *asked, struct tokg_error *err)
{
	const tokg_device_config own = with_defaults(asked);
	const struct tokg_device_config *const g = &own;
	cpu_device *c;
	struct tokg_ctl *ctl;

	if (!config_right(g, err))
		return NULL;
	c = (cpu_device *)calloc(1, sizeof(*c));
	if (c == NULL) {
		tokg_wrong(err, "device: no memory for %zu bytes of its own", sizeof(*c));
		return NULL;
	}
	for (tokg_memory *m :
		{&c->region, &c->outputs, &c->made, &c->outbox, &c->tables, &c->scratch, &c->times})
		*m = tokg_memory_none();
	c->d.ops = &cpu_ops;
	c->d.geometry = g->geometry;
	c->workers = g->workers;
	c->first_cpu = g->first_cpu;
	c->consumer.g = g->geometry;
	if (g->text_vocab != NULL) {
		c->text_view = tokg_view_here(g->text_vocab);
		c->consumer.text_view = &c->text_view;
	}
	if (!memory_all(c, g, err)) {
		cpu_close(&c->d);
		return NULL;
	}
	c->d.region = c->region.at;
	c->d.region_fd = c->region.fd;
	c->d.region_address = (uint64_t)(uintptr_t)c->region.at;
	c->d.region_dmabuf = -1;
	c->d.outputs = c->outputs.at;
	c->d.outputs_fd = c->outputs.fd;
	c->d.external_engine = g->external_engine;
	c->d.made_fd = c->made.fd;
	c->d.order = TOKG_ORDER_FAST;
	snprintf(c->d.order_reason, sizeof(c->d.order_reason),
		"host memory; ring on %s, outputs on %s", tokg_memory_pages(&c->region),
		tokg_memory_pages(&c->outputs));
	c->consumer.region = (uint8_t *)c->region.at;
	c->consumer.back = c->consumer.region + g->geometry.back_off;
	c->consumer.claim = (uint64_t *)(c->consumer.region + g->geometry.claim_off);
	c->consumer.outputs = (uint8_t *)c->outputs.at;
	c->consumer.outbox = tokg_outbox_entry(c->d.outbox, 0);
	c->consumer.outbox_mask = c->d.outbox->n - 1;
	c->consumer.outbox_reserved = &c->d.outbox->reserved;
	c->consumer.owner = &c->d.outbox->owner;
	c->consumer.owner_limit_ns = tokg_owner_limit_ns(g);
	c->consumer.workers = g->workers;
	c->consumer.rows = g->rows_of_job > 0 ? g->rows_of_job : ROWS_OF_JOB;
	c->consumer.heads = g->heads;
	c->consumer.text_by_slot = g->graphs;
	c->consumer.stop_id = g->stop_id;
	if (g->external_engine)
		tokg_engine_area_set(&c->consumer, (uint8_t *)c->outputs.at, (uint8_t *)c->made.at);
	ctl = (struct tokg_ctl *)c->region.at;
	*ctl = tokg_ctl_make(g);
	__atomic_store_n(&ctl->magic, TOKG_MAGIC, __ATOMIC_RELEASE);
	return &c->d;
}
