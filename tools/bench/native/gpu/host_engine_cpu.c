/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host_engine.h"

struct cpu_engine {
	struct host_engine e; /* first: what the caller holds */
	struct tokd_engine memory;
	uint8_t *outputs, *made;
	uint64_t outputs_bytes, made_bytes;
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
cpu_end(struct host_engine *e, uint64_t lane, uint32_t how)
{
	tokd_engine_end(&((struct cpu_engine *)e)->memory, lane, how);
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

	munmap(c->outputs, c->outputs_bytes);
	munmap(c->made, c->made_bytes);
	free(c->memory.own);
	free(c);
}

static const struct host_engine_ops cpu_ops = {cpu_prompt, cpu_put, cpu_end, cpu_look, cpu_close};

static void *
map(int fd, uint64_t bytes, int protection)
{
	void *const at = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);

	return at != MAP_FAILED ? at : NULL;
}

struct host_engine *
host_engine_cpu(const struct host_engine_place *p, struct tokg_error *err)
{
	const struct tokg_engine_area a = p->area;
	struct cpu_engine *const c = calloc(1, sizeof(*c));

	if (c == NULL) {
		snprintf(err->text, sizeof(err->text), "no memory for an engine");
		return NULL;
	}
	c->e.ops = &cpu_ops;
	c->outputs_bytes = a.made_off;
	c->made_bytes = a.made_bytes;
	c->outputs = map(p->outputs_fd, c->outputs_bytes, PROT_READ);
	c->made = map(p->made_fd, c->made_bytes, PROT_READ | PROT_WRITE);
	c->memory.own = calloc(a.lanes, sizeof(*c->memory.own));
	if (!c->outputs || !c->made || !c->memory.own) {
		snprintf(err->text, sizeof(err->text), "no memory for an engine");
		cpu_close(&c->e);
		return NULL;
	}
	c->memory.shown = (const void *)(c->outputs + a.shown_off);
	c->memory.made = (void *)c->made;
	c->memory.ids = (void *)(c->made + a.ids_in_made);
	c->memory.lanes = a.lanes;
	c->memory.room = a.room;
	return &c->e;
}
