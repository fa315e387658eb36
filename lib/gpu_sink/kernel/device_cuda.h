/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the sources of the device cuda: device_cuda.cu runs the persistent kernel,
 * graphs_cuda.cu the graphs, cuda_memory.cu allocates and accesses memory.
 */
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "common.h"
#include "host_memory.h"

typedef decltype(&cuStreamWriteValue64) tokg_cuda_write_fn;

struct tokg_cuda {
	struct tokg_device d; /* first: callers have a pointer to it */
	struct tokg_consumer consumer;
	int index;
	uint32_t workers;
	bool running;
	bool as_graphs;
	struct tokg_schedule *schedule; /* in GPU memory; with graphs */
	struct tokg_graphs *graphs;	/* NULL: none were made yet */
	struct tokg_error failure;	/* of a launch by the GPU; "": none has failed */
	cudaStream_t kernel, io;
	tokg_cuda_write_fn write_value;
	CUresult write_error;	      /* of the last failed write_value */
	void *region;		      /* device pointer */
	struct tokg_memory host_ring; /* holds the region, if it is not in GPU memory */
	bool registered;	      /* registered with the GPU */
	void *gpu_ring, *outputs, *tables, *scratch, *reserved, *text_view; /* in GPU memory */
	/*
	 * The second copy of the done words: a back area whose other words are unused. If the
	 * region is in host memory, it is in GPU memory, followed by the claims. Else it is in host
	 * memory, where the agent reads it without a copy by the driver.
	 */
	void *gpu_back;
	uint8_t *host_back; /* pinned, mapped */
	uint64_t scratch_zero;
	struct tokg_outbox *outbox; /* pinned, mapped */
	void *staging;		    /* pinned */
};

static inline bool
tokg_cuda_good(const struct tokg_cuda *c, cudaError_t e, const char *what, struct tokg_error *err)
{
	return e == cudaSuccess ||
	       tokg_wrong(err, "device cuda:%d: %s: %s", c->index, what, cudaGetErrorString(e));
}

/* An attribute of the GPU; `otherwise` if this driver does not know it. */
static inline int
tokg_cuda_attribute(int index, cudaDeviceAttr which, int otherwise)
{
	int value;

	if (cudaDeviceGetAttribute(&value, which, index) == cudaSuccess)
		return value;
	(void)cudaGetLastError(); /* else the next launch would seem to fail with it */
	return otherwise;
}

/* Looks up a function of the driver. NULL: this driver does not have it. */
static inline void *
tokg_cuda_function(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *f = NULL;

	if (cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found) !=
		cudaSuccess) {
		(void)cudaGetLastError(); /* as above */
		return NULL;
	}
	return found == cudaDriverEntryPointSuccess ? f : NULL;
}

/*
 * Makes the graphs of c->consumer, which are of one incarnation, and launches the scheduler. False
 * with `err`.
 */
bool tokg_graphs_start(struct tokg_cuda *c, struct tokg_error *err);
/* When all have ended: counts launches in the device. False with `err`: a launch has failed. */
bool tokg_graphs_ended(struct tokg_cuda *c, struct tokg_error *err);
/* The one whose blocks are --workers. */
const void *tokg_graphs_kernel(void);
void tokg_graphs_free(struct tokg_cuda *c);

/* Copies the vocabulary of TEXT slots, which may be NULL, to the GPU. False with `err`. */
bool tokg_cuda_text_view_get(
	struct tokg_cuda *c, const struct tok_vocab *v, struct tokg_error *err);
/*
 * Allocates ring, outputs, outbox, tables and scratch, and fills in the device and its consumer.
 * False with `err`; call tokg_cuda_memory_free in any case.
 */
bool tokg_cuda_memory_get(
	struct tokg_cuda *c, const struct tokg_device_config *g, struct tokg_error *err);
/* Call only when no kernel runs: freeing memory would wait for it. */
void tokg_cuda_memory_free(struct tokg_cuda *c);

/* Before the kernel starts: the region's done words to where they are, too. */
cudaError_t tokg_cuda_done_copy(struct tokg_cuda *c);

/* Operations of the device: see device.h. */
int tokg_cuda_write_u64(struct tokg_device *d, uint64_t offset, uint64_t value);
int tokg_cuda_write_u64_later(struct tokg_device *d, uint64_t offset, uint64_t value);
int tokg_cuda_read(struct tokg_device *d, uint64_t offset, void *to, size_t bytes);
int tokg_cuda_read_outputs(struct tokg_device *d, uint64_t offset, void *to, size_t bytes);
int tokg_cuda_taken(struct tokg_device *d, uint64_t *n);
int tokg_cuda_renew_made(struct tokg_device *d, struct tokg_error *err);
