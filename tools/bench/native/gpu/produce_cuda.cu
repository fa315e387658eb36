/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Producers as a kernel beside the consumer's, on a stream of its own. All that could wait for the
 * consumer, which does not end, is done before it starts: memory, and loading this kernel, which
 * the runtime would put off until the first launch. Its stack is within what the context has:
 * growing that would wait, too.
 */
#include <stdlib.h>

#include "device_cuda.h"
#include "embed.cuh"
#include "produce.cuh"

/* At most half of a multiprocessor, as produce_cuda_workers leaves it. */
__global__ void
__launch_bounds__(TOKG_BLOCK, 2) produce_blocks(const __grid_constant__ produce_plan p)
{
	__shared__ produce_shared shared;
	tokg_block b = tokg_block_here(false);

	produce_run(&p, &b, &shared, blockIdx.x);
}

namespace
{

struct cuda_produce {
	struct produce p; /* first: what the caller holds */
	produce_plan plan;
	const struct tokg_cuda *device;
	cudaStream_t stream;
	uint64_t *samples; /* in GPU memory, as are these */
	uint8_t *texts;
	uint32_t *texts_n;
	uint64_t bytes; /* of the samples */
};

bool
cuda_start(struct produce *p, struct tokg_error *err)
{
	cuda_produce *const c = (cuda_produce *)p;

	produce_blocks<<<p->producers, TOKG_BLOCK, 0, c->stream>>>(c->plan);
	return tokg_cuda_good(c->device, cudaGetLastError(), "starting the producers", err);
}

bool
cuda_collect(struct produce *p, struct tokg_error *err)
{
	cuda_produce *const c = (cuda_produce *)p;

	return tokg_cuda_good(
		       c->device, cudaStreamSynchronize(c->stream), "the producers failed", err) &&
	       tokg_cuda_good(c->device,
		       cudaMemcpy(p->samples, c->samples, c->bytes, cudaMemcpyDeviceToHost),
		       "reading their samples", err);
}

void
cuda_close(struct produce *p)
{
	cuda_produce *const c = (cuda_produce *)p;

	if (p->stop != NULL)
		__atomic_store_n(p->stop, 1, __ATOMIC_RELAXED);
	if (c->stream != NULL) {
		cudaStreamSynchronize(c->stream);
		cudaStreamDestroy(c->stream);
	}
	cudaFree(c->samples);
	cudaFree(c->texts);
	cudaFree(c->texts_n);
	cudaFreeHost(p->said);
	cudaFreeHost(p->stop);
	free(p->samples);
	free(c);
}

const struct produce_ops cuda_ops = {cuda_start, cuda_collect, cuda_close};

bool
memory_get(cuda_produce *c, struct tokg_error *err)
{
	const struct tokg_cuda *const d = c->device;
	const size_t said = c->p.producers * sizeof(struct produce_said);

	if (!tokg_cuda_good(d, cudaHostAlloc((void **)&c->p.said, said, cudaHostAllocMapped),
		    "pinned memory", err) ||
		!tokg_cuda_good(d,
			cudaHostAlloc((void **)&c->p.stop, sizeof(*c->p.stop), cudaHostAllocMapped),
			"pinned memory", err) ||
		!tokg_cuda_good(d, cudaMalloc((void **)&c->samples, c->bytes), "samples", err) ||
		!tokg_cuda_good(d, cudaHostGetDevicePointer((void **)&c->plan.said, c->p.said, 0),
			"mapping it", err) ||
		!tokg_cuda_good(d, cudaHostGetDevicePointer((void **)&c->plan.stop, c->p.stop, 0),
			"mapping it", err))
		return false;
	memset(c->p.said, 0, said);
	*c->p.stop = 0;
	c->p.samples = (uint64_t *)malloc(c->bytes);
	return c->p.samples != NULL || tokg_wrong(err, "producers: no memory");
}

/* The texts, where the kernel reads them. */
bool
texts_copy(cuda_produce *c, struct tokg_error *err)
{
	struct produce_texts *const t = &c->plan.c.texts;
	const uint64_t n = (uint64_t)c->p.producers * c->plan.g.slots;

	if (t->stride == 0)
		return true;
	if (!tokg_cuda_good(
		    c->device, cudaMalloc((void **)&c->texts, n * t->stride), "texts", err) ||
		!tokg_cuda_good(c->device, cudaMalloc((void **)&c->texts_n, n * sizeof(*t->n)),
			"texts", err) ||
		!tokg_cuda_good(c->device,
			cudaMemcpy(c->texts, t->bytes, n * t->stride, cudaMemcpyHostToDevice),
			"copying texts", err) ||
		!tokg_cuda_good(c->device,
			cudaMemcpy(c->texts_n, t->n, n * sizeof(*t->n), cudaMemcpyHostToDevice),
			"copying texts", err))
		return false;
	t->bytes = c->texts;
	t->n = c->texts_n;
	return true;
}

/* The kernel is loaded, and the context has its stack. */
bool
kernel_ready(cuda_produce *c, struct tokg_error *err)
{
	cudaFuncAttributes a;
	size_t stack = 0;
	int least = 0, most = 0;

	if (!tokg_cuda_good(c->device, cudaFuncGetAttributes(&a, produce_blocks),
		    "loading the producers", err) ||
		!tokg_cuda_good(c->device, cudaDeviceGetLimit(&stack, cudaLimitStackSize),
			"its stack", err) ||
		!tokg_cuda_good(c->device, cudaDeviceGetStreamPriorityRange(&least, &most),
			"its priorities", err) ||
		!tokg_cuda_good(c->device,
			cudaStreamCreateWithPriority(&c->stream, cudaStreamNonBlocking, most),
			"a stream", err))
		return false;
	return a.localSizeBytes <= stack ||
	       tokg_wrong(err, "producers: the kernel has a stack of %zu bytes, the context %zu",
		       a.localSizeBytes, stack);
}

} // namespace

extern "C" uint32_t
produce_cuda_workers(int index, uint32_t of_one, uint32_t others)
{
	const uint32_t all =
		of_one * (uint32_t)tokg_cuda_attribute(index, cudaDevAttrMultiProcessorCount, 0);

	if (tokg_cuda_attribute(index, cudaDevAttrMpsEnabled, 0) != 0 || all <= 1 + others)
		return TOKG_WORKERS_DEFAULT;
	return all - 1 - others;
}

extern "C" struct produce *
produce_cuda_open(struct tokg_device *d, const struct produce_config *config, const void *,
	struct tokg_error *err)
{
	cuda_produce *c;

	if (!produce_right(&d->geometry, config, err))
		return NULL;
	c = (cuda_produce *)calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->device = (const struct tokg_cuda *)d;
	c->p.ops = &cuda_ops;
	c->p.producers = d->geometry.producers;
	c->p.kept = config->kept;
	c->bytes = (2ull * c->p.producers * config->kept + 1) * sizeof(uint64_t);
	c->plan.c = *config;
	c->plan.g = d->geometry;
	c->plan.region = c->device->consumer.region;
	c->plan.outputs = c->device->consumer.outputs;
	c->plan.word = c->device->consumer.e.word;
	if (!memory_get(c, err) || !texts_copy(c, err) || !kernel_ready(c, err)) {
		cuda_close(&c->p);
		return NULL;
	}
	c->plan.samples = c->samples;
	return &c->p;
}
