/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By the kernels of tokd/engine_cuda.h on a stream of its own, which the host waits for. All that
 * could wait for the consumer, which does not end, is done before it starts.
 */
#include <stdlib.h>

#include <tokd/engine_cuda.h>

#include "device_cuda.h"
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
	const struct tokg_cuda *device;
	cudaStream_t stream;
	struct arrays gpu, host;
};

bool
done(const cuda_engine *c)
{
	return cudaStreamSynchronize(c->stream) == cudaSuccess;
}

bool
copy(const cuda_engine *c, void *to, const void *from, size_t bytes)
{
	return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, c->stream) == cudaSuccess;
}

/* From the device's index and not from this thread's, which has none yet. */
bool
lanes_copy(const cuda_engine *c, const uint64_t *lanes, uint32_t n)
{
	memcpy(c->host.lanes, lanes, n * sizeof(*lanes));
	return cudaSetDevice(c->device->index) == cudaSuccess &&
	       copy(c, c->gpu.lanes, c->host.lanes, n * sizeof(*lanes));
}

bool
cuda_prompt(struct host_engine *e, uint64_t at, uint32_t n, uint32_t *ids)
{
	cuda_engine *const c = (cuda_engine *)e;

	for (uint32_t i = 0, some; i < n; i += some) {
		some = n - i < c->memory.lanes ? n - i : c->memory.lanes;
		if (cudaSetDevice(c->device->index) != cudaSuccess ||
			!copy(c, c->host.ids, (const uint8_t *)c->device->outputs + at + 4ull * i,
				4ull * some) ||
			!done(c))
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
		tokd_engine_put_cuda(&c->memory, c->gpu.lanes, c->gpu.ids, n, c->gpu.taken,
			c->stream) != cudaSuccess ||
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
		tokd_engine_look_cuda(&c->memory, c->gpu.lanes, n, c->gpu.looks, c->stream) !=
			cudaSuccess ||
		!copy(c, c->host.looks, c->gpu.looks, n * sizeof(*looks)) || !done(c))
		return false;
	memcpy(looks, c->host.looks, n * sizeof(*looks));
	return true;
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
	free(c);
}

const struct host_engine_ops cuda_ops = {cuda_prompt, cuda_put, cuda_look, cuda_close};

template <typename T>
bool
both(T **gpu, T **host, uint32_t n)
{
	return cudaMalloc((void **)gpu, n * sizeof(T)) == cudaSuccess &&
	       cudaHostAlloc((void **)host, n * sizeof(T), cudaHostAllocDefault) == cudaSuccess;
}

bool
memory_get(cuda_engine *c)
{
	const uint32_t n = c->memory.lanes;

	return both(&c->gpu.lanes, &c->host.lanes, n) && both(&c->gpu.ids, &c->host.ids, n) &&
	       both(&c->gpu.taken, &c->host.taken, n) && both(&c->gpu.looks, &c->host.looks, n) &&
	       cudaMalloc((void **)&c->memory.own, n * sizeof(*c->memory.own)) == cudaSuccess &&
	       cudaMemset(c->memory.own, 0, n * sizeof(*c->memory.own)) == cudaSuccess &&
	       cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking) == cudaSuccess;
}

/* Both kernels run once, on no lane: the first launch of a kernel may load it. */
bool
kernels_load(cuda_engine *c)
{
	return tokd_engine_put_cuda(&c->memory, c->gpu.lanes, c->gpu.ids, 0, c->gpu.taken,
		       c->stream) == cudaSuccess &&
	       tokd_engine_look_cuda(&c->memory, c->gpu.lanes, 0, c->gpu.looks, c->stream) ==
		       cudaSuccess &&
	       cudaDeviceSynchronize() == cudaSuccess;
}

} // namespace

extern "C" struct host_engine *
host_engine_cuda(struct tokg_device *d, struct tokg_error *err)
{
	const struct tokg_engine_area a = tokg_engine_area_plan(&d->geometry);
	uint8_t *const outputs = (uint8_t *)d->outputs;
	cuda_engine *const c = (cuda_engine *)calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->e.ops = &cuda_ops;
	c->device = (const struct tokg_cuda *)d;
	c->memory.shown = (const struct tokd_lane_shown *)(outputs + a.shown_off);
	c->memory.made = (struct tokd_lane_made *)(outputs + a.made_off);
	c->memory.ids = (uint32_t *)(outputs + a.made_off + a.ids_in_made);
	c->memory.lanes = a.lanes;
	c->memory.room = a.room;
	if (!memory_get(c) || !kernels_load(c)) {
		tokg_wrong(err, "an engine on the GPU: %s", cudaGetErrorString(cudaGetLastError()));
		cuda_close(&c->e);
		return NULL;
	}
	return &c->e;
}
