/* SPDX-License-Identifier: BSD-3-Clause */
/* The block that a fiber is a thread of. C++, with -DTOKG_FIBERS. */
#pragma once

#include "block/block.cuh"
#include "fibers.h"

static inline tokg_block
fibers_block(uint32_t tid, uint32_t n)
{
	tokg_block b = {};

	b.tid = tid;
	b.n = n;
	b.lane = tid % FIBERS_TEAM;
	b.lanes = n < FIBERS_TEAM ? n : FIBERS_TEAM;
	b.team = tid / FIBERS_TEAM;
	b.teams = (n + FIBERS_TEAM - 1) / FIBERS_TEAM;
	return b;
}
