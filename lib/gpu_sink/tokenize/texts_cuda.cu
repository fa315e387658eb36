/* SPDX-License-Identifier: BSD-3-Clause */
/* texts.h on a GPU: as many blocks as are resident, each with its scratch. */
#include <stdlib.h>

#include <cuda_runtime.h>

#include "texts.cuh"

/* As many registers as let two blocks be on a multiprocessor. */
__global__ void
__launch_bounds__(TOKG_BLOCK, 2) tokg_encode_texts(const __grid_constant__ tokg_texts_plan p)
{
	__shared__ tokg_reduce shared;
	tokg_block b = tokg_block_here(true);

	b.shared = &shared;
	tokg_texts_block(&p, &b, blockIdx.x, gridDim.x);
}

namespace
{

struct cuda_texts {
	tokg_texts x; /* first: what the caller holds */
	int index;
	uint32_t blocks; /* resident at once */
	tokg_texts_plan plan;
	void *view, *texts, *scratch; /* in GPU memory */
	cudaEvent_t from, to;
	uint64_t bytes; /* of all texts */
	uint32_t n;
};

bool
good(const cuda_texts *c, cudaError_t e, const char *what, tokg_error *err)
{
	return e == cudaSuccess ||
	       tokg_wrong(err, "device cuda:%d: %s: %s", c->index, what, cudaGetErrorString(e));
}

bool
copy(const cuda_texts *c, const void *to, const void *from, uint64_t bytes, tokg_error *err)
{
	return good(c, cudaMemcpy((void *)to, from, bytes, cudaMemcpyDefault), "copying", err);
}

/* GPU memory of this size instead of *p. */
bool
memory(const cuda_texts *c, void **p, uint64_t bytes, const char *what, tokg_error *err)
{
	cudaFree(*p);
	*p = NULL;
	return good(c, cudaMalloc(p, bytes), what, err);
}

void
drop_host(tokg_texts *x)
{
	free(x->ids);
	free(x->result);
	x->ids = NULL;
	x->result = NULL;
}

/* Texts, their beginnings, ids and results in one piece of memory. */
bool
cuda_put(tokg_texts *x, const uint8_t *bytes, const uint64_t *begin, uint32_t n, tokg_error *err)
{
	cuda_texts *const c = (cuda_texts *)x;
	const uint64_t all = (begin[n] + 63) & ~63ull, scratch = tokg_texts_scratch(begin, n);
	const uint32_t blocks = n < c->blocks ? n : c->blocks;
	tokg_texts_plan *const p = &c->plan;

	c->n = n;
	c->bytes = begin[n];
	drop_host(x);
	x->ids = (uint32_t *)malloc((all + 1) * sizeof(*x->ids));
	x->result = (tokg_texts_result *)malloc((n + 1ull) * sizeof(*x->result));
	if (x->ids == NULL || x->result == NULL)
		return tokg_wrong(err, "device cuda:%d: no memory for %u texts", c->index, n);
	if (!memory(c, &c->texts, all + (n + 1ull) * 8 + n * sizeof(*p->result) + all * 4,
		    "memory for the texts", err) ||
		!memory(c, &c->scratch, (blocks + 1) * scratch, "memory for scratch", err))
		return false;
	p->view = (const tokg_view *)c->view;
	p->bytes = (const uint8_t *)c->texts;
	p->begin = (const uint64_t *)(p->bytes + all);
	p->result = (tokg_texts_result *)(p->begin + n + 1);
	p->ids = (uint32_t *)(p->result + n);
	p->n = n;
	p->scratch = (uint8_t *)c->scratch;
	p->scratch_bytes = scratch;
	return copy(c, p->bytes, bytes, begin[n], err) &&
	       copy(c, p->begin, begin, (n + 1ull) * 8, err);
}

bool
cuda_run(tokg_texts *x, uint64_t *ns, tokg_error *err)
{
	cuda_texts *const c = (cuda_texts *)x;
	const uint32_t blocks = c->n < c->blocks ? c->n : c->blocks;
	float ms = 0;

	if (c->n == 0)
		return true;
	cudaEventRecord(c->from);
	tokg_encode_texts<<<blocks, TOKG_BLOCK>>>(c->plan);
	if (!good(c, cudaGetLastError(), "starting the kernel", err))
		return false;
	cudaEventRecord(c->to);
	if (!good(c, cudaEventSynchronize(c->to), "the kernel failed", err) ||
		!good(c, cudaEventElapsedTime(&ms, c->from, c->to), "timing the kernel", err))
		return false;
	*ns = (uint64_t)(ms * 1e6f);
	return true;
}

bool
cuda_fetch(tokg_texts *x, tokg_error *err)
{
	const cuda_texts *const c = (const cuda_texts *)x;

	return copy(c, x->ids, c->plan.ids, c->bytes * 4, err) &&
	       copy(c, x->result, c->plan.result, c->n * sizeof(*x->result), err);
}

void
cuda_close(tokg_texts *x)
{
	cuda_texts *const c = (cuda_texts *)x;

	drop_host(x);
	cudaFree(c->view);
	cudaFree(c->texts);
	cudaFree(c->scratch);
	if (c->from != NULL)
		cudaEventDestroy(c->from);
	if (c->to != NULL)
		cudaEventDestroy(c->to);
	free(c);
}

const tokg_texts_ops cuda_ops = {"globaltimer", cuda_put, cuda_run, cuda_fetch, cuda_close};

/* Copy the view of the vocabulary to the GPU. */
bool
upload(cuda_texts *c, const tok_vocab *v, tokg_error *err)
{
	const size_t bytes = tokg_view_bytes(v);
	void *const image = malloc(bytes);
	bool done;

	if (image == NULL)
		return tokg_wrong(err, "no memory for %zu bytes of tables", bytes);
	done = memory(c, &c->view, bytes, "memory for the tables", err);
	if (done) {
		tokg_view_write(v, (uint64_t)(uintptr_t)c->view, image);
		done = copy(c, c->view, image, bytes, err);
	}
	free(image);
	return done;
}

bool
count_blocks(cuda_texts *c, tokg_error *err)
{
	int of_one = 0, processors = 0;

	if (!good(c,
		    cudaOccupancyMaxActiveBlocksPerMultiprocessor(
			    &of_one, tokg_encode_texts, TOKG_BLOCK, 0),
		    "occupancy of the kernel", err) ||
		!good(c,
			cudaDeviceGetAttribute(
				&processors, cudaDevAttrMultiProcessorCount, c->index),
			"number of multiprocessors", err))
		return false;
	c->blocks = (uint32_t)(of_one * processors);
	return true;
}

} // namespace

tokg_texts *
tokg_texts_cuda(const tok_vocab *v, uint32_t flags, int index, tokg_error *err)
{
	const char *const why = tokg_view_refuses(v, flags);
	cuda_texts *c;

	if (why != NULL) {
		tokg_wrong(err, "vocab: a device cannot encode with it: %s", why);
		return NULL;
	}
	c = (cuda_texts *)calloc(1, sizeof(*c));
	if (c == NULL) {
		tokg_wrong(err, "device cuda:%d: no memory", index);
		return NULL;
	}
	c->x.ops = &cuda_ops;
	c->index = index;
	if (!good(c, cudaSetDevice(index), "opening it", err) || !count_blocks(c, err) ||
		!good(c, cudaEventCreate(&c->from), "an event", err) ||
		!good(c, cudaEventCreate(&c->to), "an event", err) || !upload(c, v, err)) {
		cuda_close(&c->x);
		return NULL;
	}
	return &c->x;
}
