/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By the kernels of tokd/engine_cuda.h on a stream of its own, which the host waits for. All that
 * could wait for the consumer, which does not end, is done when it is opened.
 */
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

#include <tokd/engine_cuda.h>

#include "ring/error.h"
#include "host_engine.h"

namespace
{

/* Arguments of a call, for each lane: in GPU memory, and pinned. */
struct arrays {
	uint64_t *lanes;
	uint32_t *ids;
	uint8_t *taken;
	struct tokd_lane_look *looks;
};

struct cuda_engine {
	struct host_engine e; /* first: what the caller holds */
	struct tokd_engine memory;
	int index;
	uint8_t *outputs;
	bool by_ipc;
	cudaStream_t stream;
	struct arrays gpu, host;
};

bool
good(cuda_engine *c, int error)
{
	if (error != cudaSuccess)
		c->e.why = cudaGetErrorString((cudaError_t)error);
	return error == cudaSuccess;
}

bool
done(cuda_engine *c)
{
	return good(c, cudaStreamSynchronize(c->stream));
}

bool
copy(cuda_engine *c, void *to, const void *from, size_t bytes)
{
	return good(c, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, c->stream));
}

/* The thread that calls may have no GPU yet. */
bool
lanes_copy(cuda_engine *c, const uint64_t *lanes, uint32_t n)
{
	memcpy(c->host.lanes, lanes, n * sizeof(*lanes));
	return good(c, cudaSetDevice(c->index)) &&
	       copy(c, c->gpu.lanes, c->host.lanes, n * sizeof(*lanes));
}

bool
cuda_prompt(struct host_engine *e, uint64_t at, uint32_t n, uint32_t *ids)
{
	cuda_engine *const c = (cuda_engine *)e;

	for (uint32_t i = 0, some; i < n; i += some) {
		some = n - i < c->memory.lanes ? n - i : c->memory.lanes;
		if (!good(c, cudaSetDevice(c->index)) ||
			!copy(c, c->host.ids, c->outputs + at + 4ull * i, 4ull * some) || !done(c))
			return false;
		memcpy(ids + i, c->host.ids, 4ull * some);
	}
	return true;
}

bool
cuda_put(struct host_engine *e, const uint64_t *lanes, const uint32_t *ids, uint32_t n,
	uint8_t *taken)
{
	cuda_engine *const c = (cuda_engine *)e;

	memcpy(c->host.ids, ids, n * sizeof(*ids));
	if (!lanes_copy(c, lanes, n) || !copy(c, c->gpu.ids, c->host.ids, n * sizeof(*ids)) ||
		!good(c, tokd_engine_put_cuda(&c->memory, c->gpu.lanes, c->gpu.ids, n, c->gpu.taken,
				 c->stream)) ||
		!copy(c, c->host.taken, c->gpu.taken, n) || !done(c))
		return false;
	memcpy(taken, c->host.taken, n);
	return true;
}

bool
cuda_look(struct host_engine *e, const uint64_t *lanes, uint32_t n, struct tokd_lane_look *looks)
{
	cuda_engine *const c = (cuda_engine *)e;

	if (!lanes_copy(c, lanes, n) ||
		!good(c, tokd_engine_look_cuda(
				 &c->memory, c->gpu.lanes, n, c->gpu.looks, c->stream)) ||
		!copy(c, c->host.looks, c->gpu.looks, n * sizeof(*looks)) || !done(c))
		return false;
	memcpy(looks, c->host.looks, n * sizeof(*looks));
	return true;
}

bool
cuda_end(struct host_engine *e, uint64_t lane, uint32_t how)
{
	cuda_engine *const c = (cuda_engine *)e;

	return lanes_copy(c, &lane, 1) &&
	       good(c, tokd_engine_end_cuda(&c->memory, c->gpu.lanes, 1, how, c->stream)) &&
	       done(c);
}

void
cuda_close(struct host_engine *e)
{
	cuda_engine *const c = (cuda_engine *)e;

	for (void *m : {(void *)c->gpu.lanes, (void *)c->gpu.ids, (void *)c->gpu.taken,
		     (void *)c->gpu.looks, (void *)c->memory.own})
		cudaFree(m);
	for (void *m : {(void *)c->host.lanes, (void *)c->host.ids, (void *)c->host.taken,
		     (void *)c->host.looks})
		cudaFreeHost(m);
	if (c->stream != NULL)
		cudaStreamDestroy(c->stream);
	if (c->by_ipc)
		cudaIpcCloseMemHandle(c->outputs);
	free(c);
}

const struct host_engine_ops cuda_ops = {cuda_prompt, cuda_put, cuda_end, cuda_look, cuda_close};

template <typename T>
bool
both(cuda_engine *c, T **gpu, T **host, uint32_t n)
{
	return good(c, cudaMalloc((void **)gpu, n * sizeof(T))) &&
	       good(c, cudaHostAlloc((void **)host, n * sizeof(T), cudaHostAllocDefault));
}

bool
memory_get(cuda_engine *c)
{
	const uint32_t n = c->memory.lanes;

	return both(c, &c->gpu.lanes, &c->host.lanes, n) && both(c, &c->gpu.ids, &c->host.ids, n) &&
	       both(c, &c->gpu.taken, &c->host.taken, n) &&
	       both(c, &c->gpu.looks, &c->host.looks, n) &&
	       good(c, cudaMalloc((void **)&c->memory.own, n * sizeof(*c->memory.own))) &&
	       good(c, cudaMemset(c->memory.own, 0, n * sizeof(*c->memory.own))) &&
	       good(c, cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking));
}

/* All kernels run once, on no lane: the first launch of a kernel may load it. */
bool
kernels_load(cuda_engine *c)
{
	return good(c, tokd_engine_put_cuda(
			       &c->memory, c->gpu.lanes, c->gpu.ids, 0, c->gpu.taken, c->stream)) &&
	       good(c, tokd_engine_end_cuda(
			       &c->memory, c->gpu.lanes, 0, TOKD_LANE_STOP, c->stream)) &&
	       good(c, tokd_engine_look_cuda(
			       &c->memory, c->gpu.lanes, 0, c->gpu.looks, c->stream)) &&
	       good(c, cudaDeviceSynchronize());
}

bool
outputs_open(cuda_engine *c, const struct host_engine_place *p)
{
	cudaIpcMemHandle_t ipc;

	static_assert(sizeof(ipc) == sizeof(p->ipc), "a handle is 64 bytes");
	memcpy(&ipc, p->ipc, sizeof(ipc));
	c->by_ipc = good(
		c, cudaIpcOpenMemHandle((void **)&c->outputs, ipc, cudaIpcMemLazyEnablePeerAccess));
	return c->by_ipc;
}

/* What failed; NULL: nothing. */
const char *
parts_get(cuda_engine *c, const struct host_engine_place *p, const struct tokg_engine_area *a)
{
	if (!good(c, cudaSetDevice(p->index)))
		return "cannot be chosen";
	c->outputs = (uint8_t *)p->outputs;
	if (c->outputs == NULL && !outputs_open(c, p))
		return "outputs cannot be opened by CUDA IPC"; /* read by tools/gpu-check */
	c->memory.shown = (const struct tokd_lane_shown *)(c->outputs + a->shown_off);
	c->memory.made = (struct tokd_lane_made *)(c->outputs + a->made_off);
	c->memory.ids = (uint32_t *)(c->outputs + a->made_off + a->ids_in_made);
	if (!memory_get(c))
		return "no memory";
	return kernels_load(c) ? NULL : "kernels cannot be loaded";
}

} // namespace

extern "C" struct host_engine *
host_engine_cuda(const struct host_engine_place *p, struct tokg_error *err)
{
	const struct tokg_engine_area a = p->area;
	cuda_engine *const c = (cuda_engine *)calloc(1, sizeof(*c));
	const char *failed;

	if (c == NULL) {
		tokg_wrong(err, "an engine on cuda:%d: out of memory", p->index);
		return NULL;
	}
	c->e.ops = &cuda_ops;
	c->index = p->index;
	c->memory.lanes = a.lanes;
	c->memory.room = a.room;
	failed = parts_get(c, p, &a);
	if (failed == NULL)
		return &c->e;
	tokg_wrong(err, "an engine on cuda:%d: %s: %s", p->index, failed, c->e.why);
	cuda_close(&c->e);
	return NULL;
}
