/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What CUDA lets a graph launch, for tests: 120 children in one execution, none of which runs
 * already; and the next execution begins when all have ended. C++.
 */
#pragma once

#include "schedule.cuh"

enum graph_error { GRAPH_FINE, GRAPH_RUNS, GRAPH_TOO_MANY, GRAPH_RELAUNCHED };

struct graph_rules {
	bool runs[TOKG_GRAPHS][120];
	uint32_t launched, running; /* in this execution */
	bool again;		    /* it has launched itself */

	/* False: children of the execution before run on. */
	bool
	begin()
	{
		launched = 0;
		again = false;
		return running == 0;
	}
	uint32_t
	launch(enum tokg_graph kind, uint32_t number)
	{
		if (launched == 120 || number >= 120)
			return GRAPH_TOO_MANY;
		if (runs[kind][number])
			return GRAPH_RUNS;
		runs[kind][number] = true;
		launched++;
		running++;
		return GRAPH_FINE;
	}
	uint32_t
	relaunch()
	{
		if (again)
			return GRAPH_RELAUNCHED;
		again = true;
		return GRAPH_FINE;
	}
	void
	ended(enum tokg_graph kind, uint32_t number)
	{
		runs[kind][number] = false;
		running--;
	}
};
