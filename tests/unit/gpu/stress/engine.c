/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An external engine: takes prompts as the agent hands them out, and makes ids by the rule of the
 * engine that stands in. Now and then it dies, and another one comes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <tokd/engine.h>

#include "stress.h"
#include "kernel/engine_area.h"
#include "kernel/engine_rule.h"

#define OPEN_MAX (PRODUCERS * LANES)

struct work {
	uint64_t lane; /* 0: none */
	uint32_t last, before, prompt;
};

static struct {
	struct tokg_engine_area area;
	struct tokd_engine memory;
	struct tokd_lane_made own[OPEN_MAX];
	struct work work[OPEN_MAX];
	uint64_t number;     /* engines so far */
	uint64_t dies_after; /* all producers have begun this many texts */
	uint64_t dice;
	pthread_mutex_t lock; /* agent and engine may be two threads */
} e = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
write_number(uint64_t number)
{
	w.d->ops->write_u64(w.d, offsetof(struct tokg_ctl, engine), number);
}

/*
 * What an engine gets when it attaches. ThreadSanitizer takes a new mapping at an address for a
 * write to it: there all engines have one memory, as with the device cuda.
 */
static void
attach(void)
{
	uint8_t *made;

#ifndef __SANITIZE_THREAD__
	struct tokg_error err;

	if (w.d->ops->renew_made(w.d, &err) < 0)
		bail_out(err.text);
#endif
	made = mmap(NULL, e.area.made_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w.d->made_fd, 0);
	memset(e.own, 0, sizeof(e.own));
	e.memory = (struct tokd_engine){
		.shown = (void *)((uint8_t *)w.d->outputs + e.area.shown_off),
		.made = (void *)made,
		.own = e.own,
		.ids = (void *)(made + e.area.ids_in_made),
		.lanes = e.area.lanes,
		.room = e.area.room,
	};
	write_number(++e.number);
	e.dies_after = texts_begun() + 1 + below(&e.dice, 800);
}

void
engine_begin(void)
{
	e.dice = w.seed;
	e.area = tokg_engine_area_plan(&w.d->geometry);
	attach();
}

void
engine_offer(const struct tokg_out_entry *entry)
{
	const uint64_t offset = entry->producer * OUT_BYTES + (entry->out_off & (OUT_BYTES - 1));
	const uint32_t *ids = (const uint32_t *)((const uint8_t *)w.d->outputs +
						 tokg_engine_ids_at(&e.area, offset));

	if (entry->status != TOKG_OK || !(entry->flags & TOKG_GENERATE))
		return;
	pthread_mutex_lock(&e.lock);
	/* The lane's last prompt has ended, even if this engine has not seen that. */
	e.work[entry->lane] = (struct work){.lane = TOKD_LANE(entry->lane, entry->use),
		.last = entry->tokens > 0 ? ids[entry->tokens - 1] : 0,
		.prompt = entry->first + entry->tokens};
	pthread_mutex_unlock(&e.lock);
}

static void
make(struct work *k)
{
	const struct tokd_lane_look l = tokd_engine_look(&e.memory, k->lane);
	const uint32_t next = tokg_engine_next(k->last, k->before, k->prompt, N_IDS);

	if (l.end != TOKD_LANE_OPEN) {
		k->lane = 0;
	} else if (next == STOP_ID) {
		tokd_engine_end(&e.memory, k->lane, TOKD_LANE_STOP);
	} else if (tokd_engine_put(&e.memory, k->lane, next)) {
		k->before = k->last;
		k->last = next;
	}
}

/* The engine is gone with all its texts, and another one attaches. */
static void
die(void)
{
	__atomic_add_fetch(&w.n_engines, 1, __ATOMIC_SEQ_CST); /* before a text can be cut by it */
	write_number(0);
	memset(e.work, 0, sizeof(e.work));
	munmap(e.memory.made, e.area.made_bytes);
	attach();
}

void
engine_step(void)
{
	pthread_mutex_lock(&e.lock);
	if (texts_begun() >= e.dies_after)
		die();
	for (uint32_t i = 0; i < OPEN_MAX; i++) {
		if (e.work[i].lane != 0 && below(&e.dice, 2) == 0)
			make(&e.work[i]);
	}
	pthread_mutex_unlock(&e.lock);
}
