/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts that are continued (gpu_ring.h, "The way back"), posted by this host: a stream is a lane
 * that gets its next prompt when the answer before is complete. Ids are made by the device's own
 * engine, or by an external one that the host drives (host_engine.h), in a thread or in a process
 * of its own. All make them by the rule of kernel/engine_rule.h, and each id is compared with it.
 * An external engine ends every fourth text itself, after half of its ids.
 */
#pragma once

#include "engine_loop.h"

struct measure_generate {
	struct tokg_device *d;	 /* started; its ring is mapped */
	struct host_engine *own; /* of a thread; NULL: none */
	int process;		 /* whose engine gets each struct engine_prompt; -1: none */
	uint64_t seed;
	uint64_t n;	   /* answers */
	uint64_t limit_ns; /* after which no prompt is posted */
	uint32_t tokens;   /* ids of a prompt */
	uint32_t made;	   /* ids of an answer */
};

struct measure_generate_said {
	uint64_t n;	 /* answers, all right */
	uint64_t whole;	 /* of them: with all ids, and not ended by the engine */
	uint64_t ids;	 /* of all answers */
	uint64_t ns;	 /* from the first prompt to the last answer */
	uint64_t *first; /* [n] ns from before the prompt's first store to its first id read */
	uint64_t *all;	 /* [whole] and to its end read */
};

/* Sets the geometry's lanes and log. `lanes`: of each producer. */
void measure_generate_plan(struct tokg_geometry *g, uint32_t lanes);
/* Exits with 1 if an id or an end is wrong, or missing for 10 s. */
struct measure_generate_said measure_generate_run(const struct measure_generate *m);
