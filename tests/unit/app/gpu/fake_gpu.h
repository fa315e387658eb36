/* SPDX-License-Identifier: BSD-3-Clause */
/* A GPU ring whose consumer is the test: every slot has the status that it is told. */
#pragma once

#include "control/gpu_sink_control.h"

#define GPU_SLOTS 8
#define GPU_OUTPUTS                                                                                \
	128u /* as many posts, of the least that one takes; and the least there may be */

#define GPU_LANES 4
/* With that many lanes, the sink alone would let more come than a stream has room for. */
#define GPU_LOG 4096

extern struct fake_gpu {
	struct tokg_transport t;
	struct tokg_back back;
	/* Then ended words, then the log; and what the last read had of them. */
	uint64_t done[GPU_SLOTS + GPU_LANES + GPU_LOG], copy[GPU_SLOTS + GPU_LANES + GPU_LOG];
	struct tokg_hdr hdr[GPU_SLOTS];
	bool is_broken;
	uint32_t n_posts;
	struct {
		uint64_t ask;
		uint32_t turn, made;
	} lane[GPU_LANES];
	uint64_t log_head;
	uint8_t payload[GPU_SLOTS][TOKG_SLOT_BYTES];
} gpu;

/* Give the fixture's worker a sink, as tokd_sink_open does behind its connection. */
void give_sink(void);
/* The same, with lanes. */
void give_lanes(uint32_t lanes);
/* Another agent, of epoch gpu.back.epoch, after one that was lost. */
void attach_agent(uint32_t lanes);
/* Tokens that a lane may make now. */
uint32_t may_make(uint32_t lane);
/* Is it told to end? */
bool is_cancelled(uint32_t lane);
/* It makes one, which was granted. */
void make_token(uint32_t lane, uint32_t id);
void end_lane(uint32_t lane, enum tokg_end how);
/* All that is posted is done; CPU: of texts, ids are embedded. */
void embed(enum tokg_status status);
/* Of 20 us each: reads are due again after 5 us, or 50 if they show nothing. */
void turns(uint32_t n);
