/* SPDX-License-Identifier: BSD-3-Clause */
/* Producers as threads, for the device cpu. */
#include <pthread.h>
#include <stdlib.h>

#include "common.h"
#include "embed.cuh"
#include "produce.cuh"

namespace
{

struct cpu_produce {
	struct produce p; /* first: what the caller holds */
	produce_plan plan;
	pthread_t id[TOKG_PRODUCERS_MAX];
	uint32_t n; /* that run */
	uint32_t stop;
};

struct producer {
	cpu_produce *all;
	uint32_t producer;
};

void *
thread_main(void *argument)
{
	producer *const own = (producer *)argument;
	static thread_local produce_shared shared;
	tokg_block b = {};

	b.n = b.lanes = b.teams = 1;
	b.polite = true;
	produce_run(&own->all->plan, &b, &shared, own->producer);
	free(own);
	return NULL;
}

bool
cpu_start(struct produce *p, struct tokg_error *err)
{
	cpu_produce *const c = (cpu_produce *)p;

	for (; c->n < p->producers; c->n++) {
		producer *const own = (producer *)malloc(sizeof(*own));

		if (own == NULL)
			return tokg_wrong(err, "producers: no memory");
		*own = {c, c->n};
		if (pthread_create(&c->id[c->n], NULL, thread_main, own) != 0) {
			free(own);
			return tokg_wrong(err, "producers: no thread %u", c->n);
		}
	}
	return true;
}

bool
cpu_collect(struct produce *p, struct tokg_error *)
{
	cpu_produce *const c = (cpu_produce *)p;

	for (; c->n > 0; c->n--)
		pthread_join(c->id[c->n - 1], NULL);
	return true;
}

void
cpu_close(struct produce *p)
{
	struct tokg_error ignored;

	__atomic_store_n(p->stop, 1, __ATOMIC_RELAXED);
	cpu_collect(p, &ignored);
	free(p->samples);
	free(p->said);
	free(p);
}

const struct produce_ops cpu_ops = {cpu_start, cpu_collect, cpu_close};

} // namespace

extern "C" struct produce *
produce_cpu_open(struct tokg_device *d, const struct produce_config *config, const void *word,
	struct tokg_error *err)
{
	const uint32_t n = d->geometry.producers;
	cpu_produce *c;

	if (!produce_right(&d->geometry, config, err))
		return NULL;
	c = (cpu_produce *)calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->p.ops = &cpu_ops;
	c->p.producers = n;
	c->p.kept = config->kept;
	c->p.stop = &c->stop;
	c->p.said = (struct produce_said *)calloc(n, sizeof(*c->p.said));
	c->p.samples = (uint64_t *)calloc(2ull * n * config->kept + 1, sizeof(uint64_t));
	c->plan.c = *config;
	c->plan.g = d->geometry;
	c->plan.region = (uint8_t *)d->region;
	c->plan.outputs = (const uint8_t *)d->outputs;
	c->plan.word = (const uint8_t *)word;
	c->plan.samples = c->p.samples;
	c->plan.said = c->p.said;
	c->plan.stop = &c->stop;
	if (c->p.said == NULL || c->p.samples == NULL) {
		tokg_wrong(err, "producers: no memory");
		cpu_close(&c->p);
		return NULL;
	}
	return &c->p;
}
