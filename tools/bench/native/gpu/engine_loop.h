/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of an external engine: ids by the rule of kernel/engine_rule.h, all open texts at once.
 */
#pragma once

#include "host_engine.h"

/* A prompt, as its entry says. tools/bench/gpu_check/engine.py makes them, too. */
struct engine_prompt {
	uint64_t lane; /* and use */
	uint64_t at;   /* offset in the outputs of its ids */
	uint32_t tokens;
	uint32_t stop; /* ids after which the engine ends the text; 0: the consumer ends it */
};

static_assert(sizeof(struct engine_prompt) == 24, "engine.py packs it");

struct engine_loop;

/* Exits with 1 without memory; so do the others if the device fails. */
struct engine_loop *engine_loop_open(
	struct host_engine *own, uint32_t lanes, uint32_t n_ids, uint32_t ids_most);
/* False: the entry is none. `stop` is the caller's. */
bool engine_loop_prompt_of(
	const struct tokg_geometry *g, const struct tokg_out_entry *e, struct engine_prompt *p);
void engine_loop_take(struct engine_loop *l, const struct engine_prompt *p);
/* Puts the next id of each open text, ends what is to be ended, and forgets those that a look says
 * have ended. */
void engine_loop_pass(struct engine_loop *l);
void engine_loop_close(struct engine_loop *l);
