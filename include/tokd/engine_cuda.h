/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtokd-engine-cuda: tokd/engine.h for an engine whose ids are in GPU memory, of the GPU that
 * tokd-gpu uses. All pointers are of that memory; `e` is copied, its own pointers too: an engine
 * opens the outputs by CUDA IPC, finds shown and made at the offsets of tokg_engine_rep, and
 * allocates `own`.
 *
 * The calls only launch a kernel on `stream` (cudaStream_t), also during a capture: a loop of
 * model, put and look needs no host thread. Prompts pass the host: their entries are in host
 * memory.
 *
 * Returns a cudaError_t. A call has each lane at most once. Not run on a GPU yet.
 */
#ifndef TOKD_ENGINE_CUDA_H
#define TOKD_ENGINE_CUDA_H

#include <tokd/engine.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* tokd_engine_put: ids[i] into lanes[i]; taken[i]: it was put. */
int tokd_engine_put_cuda(const struct tokd_engine *e, const uint64_t *lanes, const uint32_t *ids,
	uint32_t n, uint8_t *taken, void *stream);
/* tokd_engine_end for each of lanes[n]. */
int tokd_engine_end_cuda(
	const struct tokd_engine *e, const uint64_t *lanes, uint32_t n, uint32_t how, void *stream);
/* tokd_engine_look: looks[i] of lanes[i]. */
int tokd_engine_look_cuda(const struct tokd_engine *e, const uint64_t *lanes, uint32_t n,
	struct tokd_lane_look *looks, void *stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
