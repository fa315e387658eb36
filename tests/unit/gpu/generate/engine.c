/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An external engine: takes prompts as the agent hands them out, and makes ids by the rule of the
 * engine that stands in. Now and then it dies, and another one comes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <tokd/engine.h>

#include "generate.h"
#include "kernel/engine_area.h"
#include "kernel/engine_rule.h"

#define OPEN_MAX (PRODUCERS * LANES)

struct work {
	uint64_t lane; /* 0: none */
	uint32_t last, before, prompt;
};

struct engine {
	struct agent *a;
	struct tokg_engine_area area;
	struct tokd_engine memory;
	struct tokd_lane_made own[OPEN_MAX];
	struct work work[OPEN_MAX];
	uint64_t number; /* of those that there were */
	uint64_t dice;
	bool lock; /* agent and engine may be two threads */
};

uint64_t n_engines;

static void
lock(struct engine *e)
{
	while (__atomic_test_and_set(&e->lock, __ATOMIC_ACQUIRE))
		;
}

static void
unlock(struct engine *e)
{
	__atomic_clear(&e->lock, __ATOMIC_RELEASE);
}

static void
say_engine(struct engine *e, uint64_t number)
{
	e->a->d->ops->write_u64(e->a->d, offsetof(struct tokg_ctl, engine), number);
}

/*
 * As an engine that attaches gets it. ThreadSanitizer takes a new mapping at an address for a write
 * to it: there all engines have one memory, as with the device cuda.
 */
static void
get_memory(struct engine *e)
{
	const struct agent *const a = e->a;
	uint8_t *made;

#ifndef __SANITIZE_THREAD__
	struct tokg_error err;

	if (a->d->ops->renew_made(a->d, &err) < 0)
		abort();
#endif
	made = mmap(NULL, e->area.made_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->d->made_fd, 0);
	memset(e->own, 0, sizeof(e->own));
	e->memory = (struct tokd_engine){
		.shown = (void *)((uint8_t *)a->d->outputs + e->area.shown_off),
		.made = (void *)made,
		.own = e->own,
		.ids = (void *)(made + e->area.ids_in_made),
		.lanes = e->area.lanes,
		.room = e->area.room,
	};
	say_engine(e, ++e->number);
}

struct engine *
engine_make(struct agent *a, uint64_t seed)
{
	struct engine *e = calloc(1, sizeof(*e));

	e->a = a;
	e->dice = seed;
	e->area = tokg_engine_area_plan(&a->d->geometry);
	get_memory(e);
	return e;
}

void
engine_offer(struct engine *e, const struct tokg_out_entry *entry)
{
	const struct tokg_geometry *g = &e->a->d->geometry;
	const uint64_t offset =
		entry->producer * g->out_bytes + (entry->out_off & (g->out_bytes - 1));
	const uint32_t *ids = (const uint32_t *)((const uint8_t *)e->a->d->outputs +
						 tokg_engine_ids_at(&e->area, offset));

	if (entry->status != TOKG_OK || !(entry->flags & TOKG_GENERATE))
		return;
	lock(e);
	/* What the lane had before is over, whether it was noticed or not. */
	e->work[entry->lane] = (struct work){.lane = TOKD_LANE(entry->lane, entry->use),
		.last = entry->tokens > 0 ? ids[entry->tokens - 1] : 0,
		.prompt = entry->first + entry->tokens};
	unlock(e);
}

static void
make(struct engine *e, struct work *w)
{
	const struct tokd_lane_look l = tokd_engine_look(&e->memory, w->lane);
	const uint32_t next = tokg_engine_next(w->last, w->before, w->prompt, N_IDS);

	if (l.end != TOKD_LANE_OPEN) {
		w->lane = 0;
	} else if (next == STOP_ID) {
		tokd_engine_end(&e->memory, w->lane, TOKD_LANE_STOP);
	} else if (tokd_engine_put(&e->memory, w->lane, next)) {
		w->before = w->last;
		w->last = next;
	}
}

/* It is gone with all its texts, and another one is there. */
static void
die(struct engine *e)
{
	__atomic_add_fetch(&n_engines, 1, __ATOMIC_SEQ_CST); /* before a text can be cut by it */
	say_engine(e, 0);
	for (uint32_t i = 0; i < OPEN_MAX; i++)
		e->work[i].lane = 0;
	munmap(e->memory.made, e->area.made_bytes);
	get_memory(e);
}

void
engine_step(struct engine *e, bool may_die)
{
	lock(e);
	if (may_die && below(&e->dice, 4096) == 0)
		die(e);
	for (uint32_t i = 0; i < OPEN_MAX; i++) {
		if (e->work[i].lane != 0 && below(&e->dice, 2) == 0)
			make(e, &e->work[i]);
	}
	unlock(e);
}
