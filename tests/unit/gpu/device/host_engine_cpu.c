/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine_area.h"
#include "host_engine.h"

struct cpu_engine {
	struct host_engine e; /* first: what the caller holds */
	struct tokd_engine memory;
	const uint8_t *outputs;
	uint64_t made_bytes;
};

static bool
cpu_prompt(struct host_engine *e, uint64_t at, uint32_t n, uint32_t *ids)
{
	memcpy(ids, ((struct cpu_engine *)e)->outputs + at, 4ull * n);
	return true;
}

static bool
cpu_put(struct host_engine *e, const uint64_t *lanes, const uint32_t *ids, uint32_t n,
	uint8_t *taken)
{
	tokd_engine_put_all(&((struct cpu_engine *)e)->memory, lanes, ids, n, taken);
	return true;
}

static bool
cpu_look(struct host_engine *e, const uint64_t *lanes, uint32_t n, struct tokd_lane_look *looks)
{
	for (uint32_t i = 0; i < n; i++)
		looks[i] = tokd_engine_look(&((struct cpu_engine *)e)->memory, lanes[i]);
	return true;
}

static void
cpu_close(struct host_engine *e)
{
	struct cpu_engine *const c = (struct cpu_engine *)e;

	munmap(c->memory.made, c->made_bytes);
	free(c->memory.own);
	free(c);
}

static const struct host_engine_ops cpu_ops = {cpu_prompt, cpu_put, cpu_look, cpu_close};

struct host_engine *
host_engine_cpu(struct tokg_device *d, struct tokg_error *err)
{
	const struct tokg_engine_area a = tokg_engine_area_plan(&d->geometry);
	struct cpu_engine *const c = calloc(1, sizeof(*c));
	struct tokd_lane_made *const own = calloc(a.lanes, sizeof(*own));
	uint8_t *const made =
		mmap(NULL, a.made_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, d->made_fd, 0);

	if (c == NULL || own == NULL || made == MAP_FAILED) {
		snprintf(err->text, sizeof(err->text), "no memory for an engine");
		if (made != MAP_FAILED)
			munmap(made, a.made_bytes);
		free(own);
		free(c);
		return NULL;
	}
	c->e.ops = &cpu_ops;
	c->outputs = d->outputs;
	c->made_bytes = a.made_bytes;
	c->memory = (struct tokd_engine){.shown = (void *)((uint8_t *)d->outputs + a.shown_off),
		.made = (void *)made,
		.own = own,
		.ids = (void *)(made + a.ids_in_made),
		.lanes = a.lanes,
		.room = a.room};
	return &c->e;
}
