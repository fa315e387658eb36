/* SPDX-License-Identifier: BSD-3-Clause */
/* A GPU ring whose consumer is the test: every slot has the status that it is told. */
#pragma once

#include "control/gpu_sink_control.h"

#define GPU_SLOTS 8
#define GPU_OUTPUTS                                                                                \
	128u /* as many posts, of the least that one takes; and the least there may be */

extern struct fake_gpu {
	struct tokg_transport t;
	struct tokg_back back;
	uint64_t done[GPU_SLOTS];
	struct tokg_hdr hdr[GPU_SLOTS];
	bool is_broken;
	uint32_t n_posts;
	uint8_t payload[GPU_SLOTS][TOKG_SLOT_BYTES];
} gpu;

/* Give the fixture's worker a sink, as tokd_sink_open does behind its connection. */
void give_sink(void);
/* All that is posted is done; CPU: of texts, ids are embedded. */
void embed(enum tokg_status status);
/* Reads are due again after 5 us: turns take less. */
void turns(uint32_t n);
